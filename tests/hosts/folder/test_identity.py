"""Keys and certificates."""

import pytest

from manela.errors import AgentError
from manela.hosts.folder.identity import (
    Invitation,
    check_certificate,
    check_key,
    expiry_of,
    find_certificate,
    fingerprint,
    make_identity,
    name_of,
    read_certificate,
    read_invitation,
)


def test_a_certificate_names_its_host_and_the_key_is_private(tmp_path):
    key, file = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make_identity("alpha.example", key, file)
    found = read_certificate(file)
    assert name_of(found) == "alpha.example"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(fingerprint(found)) == 32 * 3 - 1
    assert 700 < (expiry_of(found) - expiry_of(found).now(expiry_of(found).tzinfo)).days < 900
    # what stands around it does not make it another one
    assert check_certificate("words\n" + found + "\n", "here") == found
    with pytest.raises(FileExistsError):
        make_identity("alpha.example", key, file)


def test_what_is_no_certificate_says_so(tmp_path):
    file = tmp_path / "x.pem"
    for content in (b"", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        file.write_bytes(content)
        with pytest.raises(AgentError, match="is not a PEM certificate"):
            read_certificate(file)
    with pytest.raises(AgentError, match="cannot be read"):
        read_certificate(tmp_path / "nothing.pem")
    with pytest.raises(AgentError, match="a host's name"):
        make_identity("No Name", tmp_path / "k", tmp_path / "c")


def test_two_certificates_of_one_host_can_be_told_apart_by_whoever_has_both(tmp_path):
    from cryptography import x509

    found = []
    for number in (1, 2):
        make_identity("alpha", tmp_path / f"{number}.key", tmp_path / f"{number}.pem")
        found.append(x509.load_pem_x509_certificate((tmp_path / f"{number}.pem").read_bytes()))
    assert found[0].subject != found[1].subject
    for one in found:
        own = one.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        issuer = one.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        assert own.digest == issuer.key_identifier
    assert found[0].extensions[2] != found[1].extensions[2]


def test_a_key_of_another_certificate_is_told(tmp_path):
    for number in (1, 2):
        make_identity("alpha", tmp_path / f"{number}.key", tmp_path / f"{number}.pem")
    check_key(tmp_path / "1.key", read_certificate(tmp_path / "1.pem"))
    with pytest.raises(AgentError, match="does not belong to the certificate"):
        check_key(tmp_path / "1.key", read_certificate(tmp_path / "2.pem"))


def test_a_certificate_is_found_by_the_first_digits_of_its_fingerprint(tmp_path):
    certificates = []
    for number in (1, 2):
        make_identity("alpha", tmp_path / f"{number}.key", tmp_path / f"{number}.pem")
        certificates.append(read_certificate(tmp_path / f"{number}.pem"))
    assert find_certificate(certificates, fingerprint(certificates[1])[:14].lower()) == certificates[1]
    for wrong in ("", "AB", fingerprint(certificates[0])[:5], "00:00:00:00:00"):
        with pytest.raises(AgentError, match="match exactly one certificate"):
            find_certificate(certificates, wrong)


PRINT = "AB:" * 31 + "AB"


def test_a_line_comes_back():
    line = str(Invitation("beta", "beta.example.org:7446", PRINT))
    assert line == "manela:beta@beta.example.org:7446#" + "AB" * 32
    assert read_invitation(f"  {line}\n") == ("beta", "beta.example.org:7446", "AB" * 32)
    assert read_invitation(str(Invitation("beta", "[::1]:7446", PRINT))).address == "[::1]:7446"
    assert read_invitation(line.lower().replace("manela:beta@", "manela:beta@")).print_ == "AB" * 32


@pytest.mark.parametrize(
    "line",
    ["", "beta", "manela:beta", "manela:beta@x:1", "manela:beta@x:1#AB", "manela:Not a host@x:1#" + "AB" * 32,
     "manela:beta@x#" + "AB" * 32, "manela:beta@x:99999#" + "AB" * 32, "other:beta@x:1#" + "AB" * 32],
)  # fmt: skip
def test_what_is_no_invitation_says_so(line):
    with pytest.raises(AgentError):
        read_invitation(line)
