"""What the doctor finds in a host's folder."""

import asyncio
import contextlib
import datetime
import json
import os
import socket
import time
from types import SimpleNamespace

import numpy as np
import pytest

from manela.hosts import doctor
from manela.hosts.doctor import BAD, GOOD, POOR, Finding, examine
from manela.hosts.folder.config import FILE, Config
from manela.hosts.folder.home import STATUS, init, only_one
from manela.hosts.folder.identity import CERTIFICATE, KEY, make_identity, read_certificate
from manela.hosts.folder.store import BACKUP, NAME, Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.host import Saved
from manela.hosts.state.neighbourhood import Edge
from manela.hosts.transport.rpc import Endpoint, RpcServer


@pytest.fixture
def folder(tmp_path):
    """A host with two nodes, and nothing wrong."""
    home = tmp_path / "a"
    init(home, Config("a", "127.0.0.1:0", {}))
    with Store(home) as store:
        store.add_edges([Edge("x", ("y", "a"))])
    return home


def find(folder):
    """Level and words of each thing that the doctor has looked at."""
    return {finding.what: (finding.level, finding.message) for finding in examine(folder)}


def test_a_host_that_is_well_has_nothing_but_good_findings(folder):
    found = find(folder)
    assert {level for level, _ in found.values()} == {GOOD}
    assert list(found) == ["configuration", "permissions", "certificate", "clock", "store", "vectors", "disk", "port"]
    assert found["store"][1] == "2 nodes, 2 neighbours, 0 peers"
    assert found["vectors"][1] == "none yet"
    assert "the daemon does not run" in found["port"][1]


def test_without_a_configuration_there_is_nothing_else_to_look_at(folder):
    (folder / FILE).write_text("name = 3")
    found = find(folder)
    assert list(found) == ["configuration"]
    assert found["configuration"][0] == BAD
    (folder / FILE).unlink()
    assert list(find(folder)) == ["configuration"]


@pytest.mark.parametrize("file", [KEY, NAME, BACKUP, f"next-{KEY}"])
def test_files_that_others_can_read_are_bad(folder, file):
    (folder / file).touch()
    (folder / file).chmod(0o644)
    levels = [finding for finding in examine(folder) if finding.what == "permissions"]
    assert [finding.level for finding in levels] == [BAD]
    assert file in levels[0].message


def test_a_folder_that_others_can_look_into_is_worth_a_warning(folder):
    folder.chmod(0o755)
    assert find(folder)["permissions"] == (
        POOR, f"{folder} is open to others (mode 0755); run `chmod 700 {folder}`"
    )  # fmt: skip


def test_a_key_of_another_certificate_is_bad(folder, tmp_path):
    make_identity("other", tmp_path / "key", tmp_path / "pem")
    (folder / KEY).write_bytes((tmp_path / "key").read_bytes())
    assert find(folder)["certificate"][0] == BAD


@pytest.mark.parametrize(
    ("days", "level", "words"),
    [(-3, BAD, "expired on 20"), (5, POOR, "expires in 5 days"), (3000, GOOD, "expires in 3000 days")],
)
def test_a_certificate_is_told_by_how_long_it_lasts(folder, monkeypatch, days, level, words):
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days, minutes=5)
    monkeypatch.setattr(doctor, "expiry_of", lambda certificate: ends)
    found = find(folder)["certificate"]
    assert found[0] == level
    assert words in found[1]


def test_a_clock_that_is_before_the_certificate_is_bad(folder):
    later = time.time() + 3600
    os.utime(folder / CERTIFICATE, (later, later))
    assert find(folder)["clock"][0] == BAD


def test_a_damaged_store_is_bad_and_ends_the_examination(folder):
    (folder / NAME).write_bytes(b"no database at all" * 100)
    found = find(folder)
    assert found["store"][0] == BAD
    assert "port" not in found


def test_a_host_without_nodes_is_told_what_to_do(tmp_path):
    init(tmp_path / "a", Config("a", "127.0.0.1:0", {}))
    assert find(tmp_path / "a")["edges"] == (
        BAD, "this host has no nodes yet: import edges first (manela agent edges import FILE)"
    )  # fmt: skip


def test_edges_to_hosts_that_are_no_peers_are_worth_a_warning(folder):
    with Store(folder) as store:
        store.add_edges([Edge("x", (f"p{i}", f"host{i}")) for i in range(7)])
    level, words = find(folder)["edges"]
    assert level == POOR
    assert words.startswith("lead to host0, host1, host2, host3, host4, which are not peers")


def test_vectors_are_counted_and_damage_to_them_is_told(folder):
    VectorsFile(folder).save(Saved(["x", "y"], np.zeros((2, 1, 4), np.float32), 12, 1, 1))
    assert find(folder)["vectors"] == (GOOD, "2, of round 12")
    content = VectorsFile(folder).path.read_bytes()
    VectorsFile(folder).path.write_bytes(content[:-50])
    assert find(folder)["vectors"][0] == BAD


def test_a_port_in_use_is_bad_unless_it_is_the_daemon_that_uses_it(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        init(tmp_path / "a", Config("a", address, {}))
        level, words = find(tmp_path / "a")["port"]
        assert level == BAD
        assert words.startswith(f"cannot listen on {address}")
        (tmp_path / "a" / STATUS).write_text('{"port": 4711}')
        with only_one(tmp_path / "a"):
            assert find(tmp_path / "a")["port"] == (GOOD, "the daemon runs and listens on port 4711")


def test_a_peer_where_nobody_listens_is_bad(folder, identities):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with Store(folder) as store:
            store.add_peer("b", f"127.0.0.1:{taken.getsockname()[1]}", identities["b"].certificate.decode())
        level, words = find(folder)["to b"]
    assert level == BAD
    assert "b cannot be reached" in words


@contextlib.asynccontextmanager
async def listening_peer(folder, identities):
    """A peer `b` that lets the host of a folder in."""
    own = Endpoint("a", "127.0.0.1:1", (read_certificate(folder / CERTIFICATE),))
    server = RpcServer(
        "127.0.0.1:0", identities["b"], {"a": own}, None, None, lambda *_: None, 5.0, lambda *_: None
    )  # fmt: skip
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0.0)


def test_a_peer_that_answers_and_asks_is_good_and_one_that_was_silent_is_worth_a_warning(folder, identities):
    async def look():
        async with listening_peer(folder, identities) as server:
            with Store(folder) as store:
                store.add_peer("b", f"127.0.0.1:{server.port}", identities["b"].certificate.decode())
            found = [await asyncio.to_thread(find, folder)]
            for asked in (time.time(), time.time() - 3600, None):
                (folder / STATUS).write_text(json.dumps({"peers": {"b": {"asked": asked}}}))
                with only_one(folder):
                    found.append(await asyncio.to_thread(find, folder))
            return found

    stopped, *running = asyncio.run(look())
    assert stopped["to b"] == (GOOD, "answers and accepts this host")
    assert "from b" not in stopped
    levels, words = zip(*(one["from b"] for one in running), strict=True)
    assert levels == (GOOD, POOR, POOR)
    assert words[0].startswith("it asked this host")
    assert words[1].startswith("it has not asked this host for 3,6")
    assert words[2] == "it has not asked this host yet; `manela agent audit` shows whether it was refused"


def test_a_peer_that_does_not_know_this_host_is_bad(folder, identities):
    async def look():
        async with listening_peer(folder, identities) as server:
            server.change(identities["b"], {"c": Endpoint("c", "127.0.0.1:1", (identities["c"].certificate.decode(),))})
            with Store(folder) as store:
                store.add_peer("b", f"127.0.0.1:{server.port}", identities["b"].certificate.decode())
            return await asyncio.to_thread(find, folder)

    assert asyncio.run(look())["to b"][0] == BAD


@pytest.mark.parametrize("name", [KEY, CERTIFICATE])
def test_a_host_without_its_key_or_certificate_is_examined_to_the_end(tmp_path, name):
    init(tmp_path / "a", Config("a", "127.0.0.1:0", {}))
    (tmp_path / "a" / name).unlink()
    found = list(examine(tmp_path / "a"))
    assert found[-1] == Finding(BAD, "peers", "cannot be checked without a key and a certificate")


def test_a_disk_with_too_little_room_to_save_is_worth_a_warning(folder, monkeypatch):
    VectorsFile(folder).save(Saved(["x", "y"], np.zeros((2, 1, 4), np.float32), 12, 1, 1))
    size = VectorsFile(folder).path.stat().st_size
    for free, level in ((50e6 + 2 * size, GOOD), (50e6 + 2 * size - 1, POOR), (0, POOR)):
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path, free=free: SimpleNamespace(free=free))
        found = find(folder)["disk"]
        assert found[0] == level
        assert ("should be free" in found[1]) == (level == POOR)
