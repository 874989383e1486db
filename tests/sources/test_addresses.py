import pytest

from manela.errors import ParameterError
from manela.sources.addresses import Addresses, split_addresses


def names(text, key=None):
    addresses = Addresses(["example.org"], key)
    return [addresses.names[number] for number in addresses.number(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("anna@example.org", ["anna@example.org"]),
        ("Anna <anna@example.org>", ["anna@example.org"]),
        ('"Last, First" <a@x.org>, b@y.org (Bob)', ["a@x.org", "b@y.org"]),
        ("=?utf-8?q?J=C3=B6rg?= <j@x.org>,\tk@y.org,", ["j@x.org", "k@y.org"]),
        ('"a\\"b <no@no.org>" <q@z.org>', ["q@z.org"]),
        ("friends: a@x.org, b@y.org;", ["a@x.org", "b@y.org"]),
        ("undisclosed-recipients:;", []),
        ("", []),
    ],
)
def test_addresses_are_found_as_people_write_them(text, found):
    assert split_addresses(text) == found


@pytest.mark.parametrize("sign", [" ", "a", "<", '"', "(", '"a" ', "a@b ", "a,", "\\", "=?"])
def test_a_hostile_header_takes_no_time_and_ends_nothing(sign):
    assert len(split_addresses(sign * 60_000)) <= 60_000


def test_a_user_is_one_node_however_the_address_is_written():
    assert names("Anna@Example.ORG., anna+shop@example.org, ANNA@example.org") == ["anna@example.org"]


def test_a_domain_of_another_script_is_written_as_computers_ask_for_it():
    assert names("j@müller.example") == ["j@xn--mller-kva.example"]


@pytest.mark.parametrize(
    "machine",
    ["no-reply@x.org", "noreply@x.org", "do-not-reply@x.org", "donotreply@x.org", "MAILER-DAEMON@x.org",
     "postmaster@x.org",
     "bounces+anna=example.org@x.org", "owner-friends@x.org", "friends-request@x.org", "news.noreply@x.org"],
)  # fmt: skip
def test_addresses_without_a_person_are_left_out(machine):
    assert names(f"{machine}, bob@x.org") == ["bob@x.org"]


@pytest.mark.parametrize(
    "bad", ["anna@localhost", "anna@[127.0.0.1]", "@x.org", "anna@", "a b@x..org", "a" * 65 + "@x.org"]
)
def test_what_is_no_address_is_left_out(bad):
    assert names(bad) == []


def test_hashes_hide_the_user_keep_the_domain_and_go_by_the_key():
    one, two = names("anna@example.org", b"k" * 32), names("anna@example.org", b"l" * 32)
    assert one != two
    assert one[0].endswith("@example.org")
    assert "anna" not in one[0]
    assert one == names("Anna+x@example.org", b"k" * 32)


@pytest.mark.parametrize("domains", [[], ["nonsense"], ["a b.org"]])
def test_own_domains_are_checked(domains):
    with pytest.raises(ParameterError, match="domain"):
        Addresses(domains, None)


def test_own_addresses_are_known():
    addresses = Addresses(["@Example.org"], None)
    assert [addresses.is_own(number) for number in addresses.number("a@example.org, b@x.org")] == [True, False]
