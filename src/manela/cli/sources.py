"""The flags of the sources other than mail."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manela.errors import ParameterError, SourceError

if TYPE_CHECKING:
    from manela.sources.source import Source

SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        metavar="FILE",
        help="A file of mode 0600 with the password or token; or put it into the variable MANELA_SECRET.",
    ),
]
DatabaseUrl = Annotated[
    str,
    typer.Argument(metavar="URL", help="SQLAlchemy URL without a password: postgresql://reader@db/social."),
]
_QUERY = "Returns the columns own, other and optionally weight, in this order."


def sql(
    url: DatabaseUrl,
    query: Annotated[str, typer.Option("--query", metavar="SQL", help=_QUERY)],
    secret_file: SecretFile = None,
) -> Source:
    """Import the rows of a database query: PostgreSQL, SQLite, or any database with an SQLAlchemy driver.

    Rows are read in batches, in a transaction that cannot write. Rows with NULL are left out.
    """
    from manela.sources.sql import SqlSource

    return SqlSource(url, query, _read_secret(secret_file))


def mastodon_archive(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The .zip or .tar.gz, its folder, or a file: CSV of follows, outbox.")
    ],
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME@HOST", help="Its owner; by default as the archive says.")
    ] = "",
) -> Source:
    """Whom a person follows, mentions and boosts, from what Mastodon exports for them.

    A follow counts 1, and each mention and boost 1 more.
    """
    from manela.sources.mastodon_archive import MastodonArchiveSource

    return MastodonArchiveSource(path, owner or None)


def mastodon_database(
    url: DatabaseUrl,
    domain: Annotated[
        str, typer.Option("--domain", metavar="DOMAIN", help="The server's own domain, as in its users' addresses.")
    ],
    secret_file: SecretFile = None,
) -> Source:
    """Who follows whom, from the database of a Mastodon server; suspended accounts are left out."""
    from manela.sources.mastodon_database import MastodonDatabaseSource

    return MastodonDatabaseSource(url, domain, _read_secret(secret_file))


def mastodon_api(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, as in https://example.org.")],
    local: Annotated[
        bool, typer.Option("--local", help="All accounts of the server, by an administrator's token.")
    ] = False,
    domain: Annotated[
        str,
        typer.Option(
            "--domain", metavar="DOMAIN", help="The domain of its users' addresses, if the server reports a wrong one."
        ),
    ] = "",
    secret_file: SecretFile = None,
) -> Source:
    """Whom you follow and who follows you, from a Mastodon server by an access token.

    Waits when the server asks for it. With --state an interrupted run continues at the same page.
    """
    from manela.sources.mastodon_api import MastodonApiSource
    from manela.sources.secret import SECRET_VARIABLE

    token = _read_secret(secret_file)
    if token is None:
        raise SourceError(
            f"a token must be given, in the variable {SECRET_VARIABLE} or by --secret-file: make one in the server's "
            "settings under Development"
        )
    return MastodonApiSource(url, token, local=local, domain=domain or None)


def gpg(
    homedir: Annotated[
        Path | None, typer.Option("--homedir", metavar="DIR", help="GnuPG's folder; by default that of gpg itself.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check each signature, which takes longer.")] = False,
    names: Annotated[
        str, typer.Option("--names", metavar="email|key", help="Call keys by their address or their fingerprint.")
    ] = "email",
    deadline: Annotated[float, typer.Option("--deadline", metavar="S", help="Timeout of gpg in seconds.")] = 3600.0,
) -> Source:
    """Who certified whose key, in a GnuPG key ring.

    A generic certification counts 1, one without a check 0.5, a casual check 2, a careful one 3; trust adds its depth.
    """
    from manela.sources.gpg import GnupgSource

    if names == "email":
        return GnupgSource(homedir, verify, "email", deadline)
    if names == "key":
        return GnupgSource(homedir, verify, "key", deadline)
    raise ParameterError(f"names must be email or key, got {names!r}.")


def neo4j(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="URL for Neo4j's driver, without a password: neo4j+s://db.example.org."),
    ],
    query: Annotated[
        str, typer.Option("--query", metavar="CYPHER", help=f"{_QUERY} By default all relationships.")
    ] = "",
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="User name.")] = "neo4j",
    database: Annotated[
        str, typer.Option("--database", metavar="NAME", help="Database name; the server's default if not given.")
    ] = "",
    secret_file: SecretFile = None,
) -> Source:
    """Import the records of a Cypher query of a Neo4j database, read in batches."""
    from manela.sources.neo4j import QUERY, Neo4jSource

    return Neo4jSource(url, query or QUERY, user, _read_secret(secret_file), database or None)


def rdf(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE…", help="N-Triples, N-Quads or Turtle: .nt, .nq, .ttl.")],
    predicate: Annotated[
        list[str],
        typer.Option("--predicate", metavar="IRI", help="Count only this one; may be repeated. By default all count."),
    ] = [],  # noqa: B006
) -> Source:
    """Import the triples of RDF files whose object is not a literal; rdf:type is left out."""
    from manela.sources.rdf import RdfSource

    return RdfSource(paths, predicate)


def _read_secret(path: Path | None) -> str | None:
    """Return the password from a file or from the environment."""
    from manela.sources.secret import SECRET_VARIABLE, read_secret

    return read_secret(path, os.environ.get(SECRET_VARIABLE))


BUILDERS: dict[str, Callable[..., Source]] = {
    "sql": sql,
    "mastodon-archive": mastodon_archive,
    "mastodon-database": mastodon_database,
    "mastodon-api": mastodon_api,
    "gpg": gpg,
    "neo4j": neo4j,
    "rdf": rdf,
}
