"""The flags of the sources that read mail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manela.sources.source import Source

Domain = Annotated[
    list[str], typer.Option("--domain", metavar="DOMAIN", help="Your own domain, as in example.org; may be repeated.")
]
HalfLife = Annotated[
    float,
    typer.Option("--half-life", metavar="DAYS", help="Days after which a message counts half; 0 if all count equally."),
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
    """Who writes to whom, from the headers of mbox files and Maildir folders.

    Each message counts once for its sender with each recipient; mailing lists, automatic mail and addresses without a
    person are left out. Subjects and bodies are not read.
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
    """Who writes to whom, from Postfix or Exim logs; rotated logs are recognised."""
    from manela.sources.mail_log import MailLogSource

    return MailLogSource(paths, domain, half_life=half_life, hash_key=_read_key(hash_key))


def _read_key(path: Path | None) -> bytes | None:
    """Read the key of the hashes, which is created if the file is missing."""
    from manela.sources.hash_key import read_or_make_key

    return None if path is None else read_or_make_key(path)


MAIL_BUILDERS: dict[str, Callable[..., Source]] = {"mail": mail, "mail-log": mail_log}
