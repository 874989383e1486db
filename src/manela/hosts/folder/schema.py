"""The tables of a host's store: how they are created, upgraded, and which columns its digest covers."""

from __future__ import annotations

VERSION = 4
HOST, SECRET, HASH_KEY = "host", "secret", "hash key"
"""Keys in `meta`: the host's name, the seed of a host that does not run in lock-step, and the key of hashed names."""
_ERASURE = """
CREATE TABLE erased (hash TEXT PRIMARY KEY, host TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE erasures (
    peer TEXT NOT NULL, hash TEXT NOT NULL, name TEXT NOT NULL, asked TEXT NOT NULL, receipt TEXT NOT NULL,
    answered TEXT NOT NULL, PRIMARY KEY (peer, hash)
) WITHOUT ROWID;
CREATE TABLE actions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, user TEXT NOT NULL, action TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX actions_by_user ON actions (user, id);
"""
SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE peers (name TEXT PRIMARY KEY, address TEXT NOT NULL, nodes INTEGER) WITHOUT ROWID;
CREATE TABLE certificates (peer TEXT NOT NULL REFERENCES peers ON DELETE CASCADE, pem TEXT NOT NULL UNIQUE);
CREATE TABLE nodes (name TEXT PRIMARY KEY, private INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE edges (
    own TEXT NOT NULL, other TEXT NOT NULL, host TEXT NOT NULL, weight REAL NOT NULL, PRIMARY KEY (own, other, host)
) WITHOUT ROWID;
CREATE INDEX edges_by_other ON edges (other, host);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, peer TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX audit_by_peer ON audit (peer, id);
{_ERASURE}
PRAGMA user_version = {VERSION};
"""
UPGRADES = {
    1: "ALTER TABLE peers ADD COLUMN nodes INTEGER; PRAGMA user_version = 2;",
    2: """
CREATE TABLE nodes (name TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT OR IGNORE INTO nodes SELECT own FROM edges;
INSERT OR IGNORE INTO nodes SELECT other FROM edges WHERE host = (SELECT value FROM meta WHERE name = 'host');
DELETE FROM edges WHERE host = '';
CREATE INDEX edges_by_other ON edges (other, host);
CREATE INDEX audit_by_peer ON audit (peer, id);
PRAGMA user_version = 3;
""",
    3: f"""
ALTER TABLE nodes ADD COLUMN private INTEGER NOT NULL DEFAULT 0;
{_ERASURE}
PRAGMA user_version = 4;
""",
}
"""Statements that upgrade a store of this version to the next."""
COLUMNS = {
    "peers": ("name", "address", "nodes"),
    "certificates": ("peer", "pem"),
    "nodes": ("name", "private"),
    "edges": ("own", "other", "host", "weight"),
    "erased": ("hash", "host"),
    "erasures": ("peer", "hash", "name", "receipt"),
    "meta": ("name", "value"),
}
"""The columns that the digest covers; of `meta`, only the rows selected by `FACTS`."""
FACTS = f"name IN ('{HOST}', '{SECRET}', '{HASH_KEY}')"
