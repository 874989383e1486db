"""What the pages say that there is before their blocks: mailboxes, logs, archives, key rings, databases."""

import contextlib
import gzip
import json
import mailbox
import os
import shutil
import sqlite3
import sys
import zipfile
from pathlib import Path

import pytest

for folder in ("sources", "contracts"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

PEOPLE = [f"{name}@example.org" for name in ("anna", "bob", "cem", "dora", "eve", "finn")]
STRANGERS = [f"{name}@x.net" for name in ("gita", "hugo", "ines")]


@contextlib.contextmanager
def set_up(code, folder):
    """Put into the folder what the code names, start what it asks; yields variables of the environment."""
    with contextlib.ExitStack() as stack:
        variables = {}
        if "vectors.npz" in code and "-o vectors.npz" not in code and "save(" not in code:
            _vectors(folder, stack)
        for word, prepare in _PARTS.items():
            if word in code:
                variables |= prepare(folder, stack) or {}
        yield variables


def _vectors(folder, _):
    from manela import Manela

    Manela(dimensions=16, random_state=0).fit(folder / "friends.csv").save(folder / "vectors.npz")


def _ledger(folder, _):
    database = sqlite3.connect(folder / "ledger.db")
    database.execute("CREATE TABLE transfers (payer TEXT, payee TEXT, amount REAL)")
    database.executemany("INSERT INTO transfers VALUES (?, ?, 1)", [(f"a{n % 9}", f"b{n % 7}") for n in range(60)])
    database.commit()
    database.close()


def _vmail(folder, _):
    everybody = PEOPLE + STRANGERS
    (folder / "vmail" / "example.org").mkdir(parents=True)
    for place, name in enumerate(PEOPLE):
        box = mailbox.Maildir(folder / "vmail" / "example.org" / name.split("@")[0], create=True)
        for number in range(4):
            other = everybody[(place + number + 1) % len(everybody)]
            box.add(
                f"Message-ID: <{place}-{number}@x>\nDate: Mon, 16 Nov 2026 10:00:00 +0000\nFrom: {name}\nTo: {other}\n"
                "Subject: hello\n\nhello\n"
            )


def _mail_log(folder, _):
    def lines(numbers):
        for number in numbers:
            one, other = PEOPLE[number % 6], STRANGERS[number % 3]
            yield f"Nov 16 10:00:00 mx postfix/qmgr[1]: Q{number}: from=<{one}>, size=9, nrcpt=1 (queue active)\n"
            yield f"Nov 16 10:00:01 mx postfix/smtp[2]: Q{number}: to=<{other}>, relay=x, status=sent (250 ok)\n"

    with gzip.open(folder / "mail.log.2.gz", "wt") as file:
        file.writelines(lines(range(6)))
    (folder / "mail.log.1").write_text("".join(lines(range(6, 12))))
    (folder / "mail.log").write_text("".join(lines(range(12, 18))))


def _archive(folder, _):
    from source_cases import ACTOR, FOLLOWING, OUTBOX

    (folder / "following_accounts.csv").write_text(FOLLOWING)
    with zipfile.ZipFile(folder / "archive.zip", "w") as packed:
        packed.writestr("outbox.json", json.dumps(OUTBOX))
        packed.writestr("actor.json", json.dumps(ACTOR))
        packed.writestr("following_accounts.csv", FOLLOWING)


def _keys(folder, stack):
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not installed")
    from key_ring import KeyRing

    ring = KeyRing(folder / "keys")
    ring.folder.mkdir(mode=0o700)
    stack.callback(lambda: ring.run("--no-autostart", "--list-keys"))
    for name in PEOPLE[:4]:
        ring.make_key(f"{name.split('@')[0]} <{name}>")
    for one, other in (("anna", "bob"), ("bob", "cem"), ("cem", "anna"), ("dora", "anna")):
        ring.certify(one, other)
    return {"GNUPGHOME": str(ring.folder)}


def _rdf(folder, _):
    knows = "<http://xmlns.com/foaf/0.1/knows>"
    lines = [f"<http://x.net/{a}> {knows} <http://x.net/{b}> .\n" for a, b in zip("abcd", "bcda", strict=True)]
    (folder / "people.nt").write_text("".join(lines))
    (folder / "people.ttl").write_text("".join(lines))


def _postgres(_, stack):
    from benchmarks.postgres import find_programs, start_postgres

    from manela.hosts.federation import free_ports

    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    [port] = free_ports(1)
    server = stack.enter_context(start_postgres(programs, port))
    server.execute(
        "CREATE ROLE reader LOGIN PASSWORD '…'; CREATE DATABASE ledger; CREATE DATABASE mastodon_production;\n"
        "\\connect ledger\n"
        "CREATE TABLE transfers (payer text, payee text, amount numeric);"
        "INSERT INTO transfers SELECT 'a' || n % 9, 'b' || n % 7, 1 FROM generate_series(1, 60) n;"
        "CREATE TABLE partners (account text, partner text, bank text, volume numeric);"
        "INSERT INTO partners SELECT 'a' || n % 9, 'b' || n % 7, 'bank.example', n FROM generate_series(1, 60) n;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;\n"
        "\\connect mastodon_production\n"
        "CREATE TABLE accounts (id bigint, username varchar, domain varchar, suspended_at timestamp);"
        "CREATE TABLE follows (id bigserial, account_id bigint, target_account_id bigint);"
        "INSERT INTO accounts SELECT n, (ARRAY['anna', 'bob', 'cem', 'dora', 'eve'])[n], NULL, NULL "
        "FROM generate_series(1, 5) n;"
        "INSERT INTO follows (account_id, target_account_id) SELECT n, n % 5 + 1 FROM generate_series(1, 5) n;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;\n"
    )
    return {"PGPORT": str(port)}


def _neo4j(_, stack):
    from bolt_server import Bolt, serve_bolt

    people = [f"p{number}" for number in range(6)]
    edges = [[one, people[(number + 1) % 6], 1.0] for number, one in enumerate(people)]
    stack.enter_context(serve_bolt(Bolt(["a", "b", "strength"], edges, password="…"), port=7687))


def _mastodon(_, stack):
    from mastodon_server import Mastodon, serve_mastodon

    accounts = {"1": ("anna", None), "2": ("bob", None), "3": ("cem", "other.example")}
    mastodon = Mastodon(accounts, [("1", "2"), ("2", "1"), ("1", "3"), ("3", "1")])
    stack.enter_context(serve_mastodon(mastodon, port=3000))


def _alpha_and_beta(folder, _):
    """Two hosts that have pinned each other's certificates."""
    from manela.hosts.folder.config import Config
    from manela.hosts.folder.home import init
    from manela.hosts.folder.store import Store

    addresses = {"alpha": "127.0.0.1:7446", "beta": "127.0.0.1:7449"}
    for name, address in addresses.items():
        init(folder / name, Config(name, address, {"dimensions": 4}))
    with Store(folder / "alpha") as store:
        store.add_peer("beta", addresses["beta"], (folder / "beta" / "certificate.pem").read_text())


def _watched_host(folder, _):
    """A host with a status page, on whose address it can answer."""
    from manela.hosts.folder.config import Config
    from manela.hosts.folder.home import init

    init(folder / "host", Config("alpha", "127.0.0.1:7446", {"dimensions": 4}, watch="127.0.0.1:7447"))


def _ray(_, stack):
    """Ray on this machine, of which `ray stop` would end any other, too."""
    for name in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if name.read_text().strip() == "raylet":
                pytest.skip("a Ray cluster runs on this machine, which `ray stop` would end")


def _card(folder, _):
    """A network of three people where Triton's interpreter takes the place of a card, and a long time."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        (folder / "friends.csv").write_text("alice,bob\nbob,carol\ncarol,alice\n")


def _published(_, __):
    files = ("Homo_sapiens.mat", "blogcatalog.mat")
    for place in (os.environ.get("MANELA_DATA"), Path(__file__).resolve().parents[3] / "shared" / "data"):
        if place and all((Path(place) / file).is_file() for file in files):
            return {"MANELA_DATA": str(place)}
    return pytest.skip(f"{' and '.join(files)} are neither in MANELA_DATA nor in ../shared/data")


def _calls(folder, _):
    for name in ("calls-1.csv.gz", "big.csv.gz"):
        with gzip.open(folder / name, "wb") as file:
            file.write((folder / "friends.csv").read_bytes())


def _host(folder, _):
    """A host in the folder that commands take by default."""
    from manela.hosts.folder.config import Config
    from manela.hosts.folder.home import init
    from manela.hosts.folder.store import Store
    from manela.hosts.state.neighbourhood import Edge

    init(folder / "manela-host", Config("alpha", "127.0.0.1:7446", {"dimensions": 4}))
    with Store(folder / "manela-host") as store:
        store.add_edges([Edge("ann", ("bob", "alpha"))])


def _peer(folder, _):
    """The certificate of beta, and edges of alpha."""
    from manela.hosts.folder.identity import make_identity

    make_identity("beta", folder / "beta.key", folder / "beta.pem")
    (folder / "edges.csv").write_text("ann,bob\nbob,cem@beta,2\n")


_PARTS = {
    "calls-*": _calls,
    "big.csv.gz": _calls,
    "agent backup alpha.tar": _host,
    " beta.pem": _peer,
    "ledger.db": _ledger,
    " vmail ": _vmail,
    "mail.log": _mail_log,
    "archive.zip": _archive,
    "import gpg": _keys,
    "people.nt": _rdf,
    "postgresql://": _postgres,
    "bolt://": _neo4j,
    "mastodon-api": _mastodon,
    "agent renew": _alpha_and_beta,
    "agent serve": _watched_host,
    "ray stop": _ray,
    'engine="gpu"': _card,
    " ppi": _published,
    "--only links": _published,
    "--only relationship": _published,
}
"""By words of the code."""
