"""The database of a Mastodon server, as PostgreSQL has it."""

import pytest

from manela.errors import SourceError
from manela.sources.mastodon_database import MastodonDatabaseSource
from manela.sources.state import ImportState

SCHEMA = """
CREATE TABLE accounts (id bigint PRIMARY KEY, username varchar NOT NULL, domain varchar, suspended_at timestamp);
CREATE TABLE follows (id bigserial PRIMARY KEY, account_id bigint NOT NULL, target_account_id bigint NOT NULL);
INSERT INTO accounts VALUES (1, 'Ann', NULL, NULL), (2, 'bob', 'Other.Example', NULL), (3, 'cem', NULL, NULL),
    (4, 'spam', NULL, now());
INSERT INTO follows (account_id, target_account_id) VALUES (1, 2), (3, 1), (2, 3), (4, 1), (1, 4);
"""


def test_follows_become_edges_between_addresses(postgres):
    postgres.execute(SCHEMA)
    source = MastodonDatabaseSource(postgres.url, "Home.Example")
    with ImportState(None, source.key) as state:
        found = {edge for batch in source.read(state) for edge in zip(batch.own, batch.other, strict=True)}
    assert found == {
        ("ann@home.example", "bob@other.example"),
        ("cem@home.example", "ann@home.example"),
        ("bob@other.example", "cem@home.example"),
    }
    assert source.describe() == "3 rows"


@pytest.mark.parametrize("domain", ["", "home.example'; DROP TABLE follows; --", "a b"])
def test_a_domain_that_is_none_never_reaches_the_database(domain):
    with pytest.raises(SourceError, match="host"):
        MastodonDatabaseSource("postgresql://mastodon@/mastodon", domain)


def test_a_database_that_is_not_mastodons_is_told_in_a_line(tmp_path):
    (tmp_path / "empty.db").touch()
    source = MastodonDatabaseSource(f"sqlite:///{tmp_path / 'empty.db'}", "home.example")
    with ImportState(None, source.key) as state, pytest.raises(SourceError, match="no such table: follows"):
        list(source.read(state))
