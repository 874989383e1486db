"""manela import: writes the edges of a source to a file, and the flags of each source."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter as Argument
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from manela.cli.panels import Commands
from manela.errors import ParameterError, SourceError

if TYPE_CHECKING:
    from manela.sources.source import Source


Builder = Callable[..., "Source"]

imports = Commands("Import edges from mail, the fediverse or a database.")


def add_sources(
    group: typer.Typer, finish: Callable[..., None], finish_acts: Callable[..., None] | None = None
) -> None:
    """Add a command for each source to a group; it builds the source from its flags, and passes it to `finish`.

    The flags of a command are those of the source and those of `finish`, except for its first argument. Sources in
    which users write or follow are passed to `finish_acts`, if it is given.
    """
    for name, build in BUILDERS.items():
        group.command(name)(_make_command(build, finish_acts if finish_acts and name in ACTS else finish))


def _make_command(build: Builder, finish: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the flags of two functions: one builds a source, the other uses it."""
    flags, finish_flags = _arguments(build), _arguments(finish)
    del finish_flags[next(iter(finish_flags))]

    @wraps(build)
    def command(**values: Any) -> None:
        finish_values = {name: values.pop(name) for name in finish_flags}
        _check_paths(values, finish_values)
        finish(build(**values), **finish_values)

    arguments = [argument.replace(kind=Argument.KEYWORD_ONLY) for argument in (*flags.values(), *finish_flags.values())]
    command.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    command.__annotations__ = {argument.name: argument.annotation for argument in arguments}
    return command


def _check_paths(inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    """Refuse to overwrite an input, or to write two outputs to one file."""
    used = [path for value in inputs.values() for path in (value if isinstance(value, list) else [value])]
    for path in (path for path in outputs.values() if isinstance(path, Path)):
        for used_path in used:
            if isinstance(used_path, Path) and used_path.exists() and path.exists() and path.samefile(used_path):
                raise ParameterError(f"{path}: is read by this import and would be overwritten; name another file")
            if isinstance(used_path, Path) and path.absolute() == used_path.absolute():
                raise ParameterError(f"{path}: is named twice; name another file")
        used.append(path)


def _arguments(function: Callable[..., Any]) -> dict[str, Argument]:
    hints = get_type_hints(function, {**function.__globals__, "Source": Any}, include_extras=True)
    return {name: argument.replace(annotation=hints[name]) for name, argument in signature(function).parameters.items()}


def write_file(
    source: Source,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="CSV file for the edges; - for stdout.")
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Keep the position in the source here, so that the next import reads only what is new.",
        ),
    ] = None,
) -> None:
    """Write the edges of a source to a file."""
    import sys

    from manela.sources.source import STDOUT, import_to_file
    from manela.system.files import check_writable

    if output != STDOUT:
        check_writable(output)
    written = import_to_file(source, output, state)
    print(f"{output}: {written:,} edges; {source.describe()}", file=sys.stderr)


SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        metavar="FILE",
        help="A file of mode 0600 with the password or token; or put it into the variable MANELA_SECRET.",
    ),
]
DatabaseUrl = Annotated[
    str, typer.Argument(metavar="URL", help="SQLAlchemy URL without a password: postgresql://reader@db/social.")
]
_QUERY = "Returns the columns own, other and optionally weight, in this order."


def sql(
    url: DatabaseUrl,
    query: Annotated[str, typer.Option("--query", metavar="SQL", help=_QUERY)],
    secret_file: SecretFile = None,
) -> Source:
    """Import the rows of an SQL query.

    From PostgreSQL, SQLite, or any database with an SQLAlchemy driver. Rows are read in batches, in a transaction that
    cannot write. Rows with NULL are left out.
    """
    from manela.sources.sql import SqlSource

    return SqlSource(url, query, _read_secret(secret_file))


def mastodon_archive(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The .zip or .tar.gz, its folder, or a file: CSV of follows, outbox.")
    ],
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME@HOST", help="The archive's owner; by default as it says itself.")
    ] = "",
) -> Source:
    """Import whom a person follows, from a Mastodon archive.

    Also whom they mention and boost. A follow counts 1, and each mention and boost 1 more.
    """
    from manela.sources.mastodon_archive import MastodonArchiveSource

    return MastodonArchiveSource(path, owner or None)


def mastodon_database(
    url: DatabaseUrl,
    domain: Annotated[
        str, typer.Option("--domain", metavar="DOMAIN", help="The server's domain, as in its users' addresses.")
    ],
    secret_file: SecretFile = None,
) -> Source:
    """Import who follows whom, from a Mastodon database.

    Suspended accounts are left out.
    """
    from manela.sources.sql import MastodonDatabaseSource

    return MastodonDatabaseSource(url, domain, _read_secret(secret_file))


def mastodon_api(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, for example https://example.org.")],
    local: Annotated[
        bool, typer.Option("--local", help="All accounts of the server; needs an administrator's token.")
    ] = False,
    domain: Annotated[
        str,
        typer.Option(
            "--domain", metavar="DOMAIN", help="The domain of its users' addresses, if the server reports a wrong one."
        ),
    ] = "",
    secret_file: SecretFile = None,
) -> Source:
    """Import who follows whom, from a Mastodon server.

    Reads whom you follow and who follows you, with an access token. Waits when the server asks for it. With --state an
    interrupted run continues at the same page.
    """
    from manela.sources.mastodon_api import MastodonApiSource
    from manela.sources.secret import SECRET_VARIABLE

    token = _read_secret(secret_file)
    if token is None:
        raise SourceError(
            f"missing access token: set {SECRET_VARIABLE} or pass --secret-file; make a token in the server's settings "
            "under Development"
        )
    return MastodonApiSource(url, token, local=local, domain=domain or None)


def gpg(
    homedir: Annotated[
        Path | None, typer.Option("--homedir", metavar="DIR", help="GnuPG's folder; by default the one that gpg uses.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check each signature, which takes longer.")] = False,
    names: Annotated[
        str, typer.Option("--names", metavar="email|key", help="Call keys by their address or their fingerprint.")
    ] = "email",
    deadline: Annotated[float, typer.Option("--deadline", metavar="S", help="Timeout of gpg in seconds.")] = 3600.0,
) -> Source:
    """Import who certified whose key, from GnuPG.

    A generic certification counts 1, one without a check 0.5, a casual check 2, a careful one 3; trust adds its depth.
    """
    from manela.sources.gpg import GnupgSource

    return GnupgSource(homedir, verify, names, deadline)  # type: ignore[arg-type]


def neo4j(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="URL for Neo4j's driver, without a password: neo4j+s://db.example.org.")
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
    """Import the records of a Cypher query of Neo4j."""
    from manela.sources.neo4j import QUERY, Neo4jSource

    return Neo4jSource(url, query or QUERY, user, _read_secret(secret_file), database or None)


def rdf(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE…", help="N-Triples, N-Quads or Turtle: .nt, .nq, .ttl.")],
    predicate: Annotated[
        list[str],
        typer.Option("--predicate", metavar="IRI", help="Count only this one; may be repeated. By default all count."),
    ] = [],  # noqa: B006
) -> Source:
    """Import the triples of RDF files.

    Triples whose object is a literal, and those of rdf:type, are left out.
    """
    from manela.sources.rdf import RdfSource

    return RdfSource(paths, predicate)


def _read_secret(path: Path | None) -> str | None:
    from manela.sources.secret import SECRET_VARIABLE, read_secret

    return read_secret(path, os.environ.get(SECRET_VARIABLE))


Domain = Annotated[
    list[str], typer.Option("--domain", metavar="DOMAIN", help="Your domain, for example example.org; may be repeated.")
]
HalfLife = Annotated[
    float,
    typer.Option("--half-life", metavar="DAYS", help="Days after which a message counts half; 0 to count all equally."),
]
HashKey = Annotated[
    Path | None,
    typer.Option(
        "--hash-key",
        metavar="FILE",
        help="Replace addresses by keyed hashes; the key is in this file, which is created if missing.",
    ),
]


def mail(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="mbox files, Maildir folders, or folders of such.")
    ],
    domain: Domain,
    half_life: HalfLife = 180.0,
    most_recipients: Annotated[
        int, typer.Option(metavar="N", min=1, help="Leave out messages with more recipients.")
    ] = 50,
    hash_key: HashKey = None,
) -> Source:
    """Import who writes to whom, from mbox or Maildir.

    Only headers are read, not subjects and bodies. Each message counts once for its sender with each recipient; mailing
    lists, automatic mail and addresses without a person are left out.
    """
    from manela.sources.mail import MailSource

    key = _read_key(hash_key)
    return MailSource(paths, domain, half_life=half_life, most_recipients=most_recipients, hash_key=key)


def mail_log(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Logs of Postfix or Exim, oldest first.")],
    domain: Domain,
    half_life: HalfLife = 180.0,
    hash_key: HashKey = None,
) -> Source:
    """Import who writes to whom, from Postfix or Exim logs.

    Rotated logs are recognised.
    """
    from manela.sources.mail_log import MailLogSource

    return MailLogSource(paths, domain, half_life=half_life, hash_key=_read_key(hash_key))


def _read_key(path: Path | None) -> bytes | None:
    from manela.sources.secret import read_or_make_key

    return None if path is None else read_or_make_key(path)


BUILDERS: dict[str, Builder] = {
    "mail": mail, "mail-log": mail_log, "sql": sql, "mastodon-archive": mastodon_archive,
    "mastodon-database": mastodon_database, "mastodon-api": mastodon_api, "gpg": gpg, "neo4j": neo4j, "rdf": rdf,
}  # fmt: skip

ACTS = ("mail", "mail-log", "mastodon-archive", "mastodon-database", "mastodon-api")
"""The sources in which users write or follow, so that people elsewhere can add edges to own users."""


add_sources(imports, write_file)
