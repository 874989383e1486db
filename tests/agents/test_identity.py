"""Keys and certificates."""

import pytest

from manela.agents.identity import check_certificate, expiry_of, fingerprint, make_identity, name_of, read_certificate
from manela.errors import AgentError


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
        with pytest.raises(AgentError, match="is no certificate"):
            read_certificate(file)
    with pytest.raises(AgentError, match="cannot be read"):
        read_certificate(tmp_path / "nothing.pem")
    with pytest.raises(AgentError, match="a host's name"):
        make_identity("No Name", tmp_path / "k", tmp_path / "c")
