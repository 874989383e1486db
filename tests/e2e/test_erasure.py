"""Real daemons from which a person is removed: no file of either host has the name."""

import time

import pytest

from manela.formats.datasets import planted_partition
from manela.hosts.federation import Federation, assign
from manela.hosts.folder.erasure import list_requests
from manela.hosts.folder.store import BACKUP, Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.neighbourhood import Edge

NODE = "anna.wintermute"


@pytest.fixture
def federation(tmp_path):
    graph, _ = planted_partition(80, 2, inside=8, outside=2, seed=3)
    return Federation(graph, assign(graph, 2, "random", 1), tmp_path, {"dimensions": 8}, wait=0.2, finish=20.0)


def files_with(home, text):
    return {path.name for path in home.rglob("*") if path.is_file() and text.encode() in path.read_bytes()}


def wait_until(federation, is_over):
    while not is_over():
        federation.check()
        time.sleep(0.1)


def test_a_removed_person_is_in_no_file_of_either_host(federation, manela_here, tmp_path):
    one, two = federation.members
    homes = [member.home for member in federation.members]
    nodes = []
    for home in homes:
        with Store(home) as store:
            nodes.append(sorted(store.nodes())[0])
    with Store(one.home) as store:
        store.add_edges([Edge(NODE, (nodes[0], one.name)), Edge(NODE, (nodes[1], two.name))])
    with Store(two.home) as store:
        store.add_edges([Edge(nodes[1], (NODE, one.name))])
        store.audit([(one.name, "not adjacent", f"{NODE}@{one.name} and {nodes[1]} are not adjacent")])
    with federation.running():
        for _ in federation.wait():
            pass
        assert NODE in VectorsFile(one.home).load().names
        assert all(BACKUP in files_with(home, NODE) for home in homes)
        done = manela_here("agent", "node", "remove", NODE, "--home", one.home)
        assert done.stdout == f"removed {NODE}, with 2 edges; 1 peers are asked to forget it\n"

        def is_over():
            with Store(one.home) as store:
                has_receipt = all(request.receipt for request in list_requests(store))
            return has_receipt and not any(files_with(home, NODE) for home in homes)

        wait_until(federation, is_over)
        wait_until(federation, lambda: all(status["state"] == "done" for status in federation.statuses()))
        assert all((home / BACKUP).exists() for home in homes)
    shown = manela_here("agent", "node", "receipts", "--home", one.home).stdout
    assert f"  {two.name}  " in shown
    assert "forgotten" in shown
    audit = manela_here("agent", "audit", "--json", "--home", two.home).stdout
    assert f'"user": "peer {one.name}", "action": "erasure"' in audit
    (tmp_path / "edges.csv").write_text(f"{nodes[1]},{NODE}@{one.name}\n")
    done = manela_here("agent", "edges", "import", tmp_path / "edges.csv", "--home", two.home)
    assert done.stdout == "added 0 edges, 1 lines with erased nodes left out\n"
    assert not any(files_with(home, NODE) for home in homes)
