"""The commands of a host, as an operator types them."""

import datetime
import json
import os
import pwd
import re
import time

import numpy as np
import pytest

from manela.hosts.folder.audit import read_actions
from manela.hosts.folder.store import Store
from manela.hosts.state.messages import SMOOTH, START


@pytest.fixture
def made(tmp_path, manela_here):
    for name, port in (("alpha", 7446), ("beta", 7447)):
        done = manela_here("agent", "init", name, "--home", tmp_path / name, "--listen", f"127.0.0.1:{port}")
        assert done.returncode == 0, done.stderr
    return tmp_path


def one_line(done, words):
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr


def test_init_makes_a_host_once(made, manela_here):
    assert {path.name for path in (made / "alpha").iterdir()} >= {
        "agent.toml",
        "key.pem",
        "certificate.pem",
        "store.db",
    }
    assert (made / "alpha").stat().st_mode & 0o777 == 0o700
    one_line(manela_here("agent", "init", "alpha", "--home", made / "alpha"), "already holds a host")
    one_line(manela_here("agent", "init", "A B", "--home", made / "x"), "a host's name must be")
    one_line(manela_here("agent", "init", "x", "--home", made / "x", "--listen", "7446"), "host:port")
    one_line(manela_here("agent", "init", "x", "--home", made / "x", "--ratios", "0.9,0.9"), "ratios must sum to 1")
    one_line(manela_here("agent", "init", "unknown", "--home", made / "x"), "a host's name must not be 'unknown'")
    one_line(manela_here("agent", "init", "x", "--home", made / "x", "--watch", "0.0.0.0:1234"), "on this machine only")
    assert not (made / "x").exists()


def test_peers_are_known_by_their_own_certificates(made, manela_here):
    certificate = made / "beta" / "certificate.pem"
    home = ("--home", made / "alpha")
    one_line(manela_here("agent", "peer", "add", "gamma", "h:1", certificate, *home), "is the certificate of 'beta'")
    one_line(manela_here("agent", "peer", "add", "alpha", "h:1", made / "alpha" / "certificate.pem", *home), "itself")
    one_line(manela_here("agent", "peer", "add", "beta", "nowhere", certificate, *home), "host:port")
    done = manela_here("agent", "peer", "add", "beta", "127.0.0.1:7447", certificate, *home)
    assert done.returncode == 0
    shown = done.stdout.splitlines()[-1]
    assert shown in manela_here("agent", "peer", "list", *home).stdout
    one_line(manela_here("agent", "peer", "remove", "gamma", *home), "is not a peer")


def test_nodes_edges_and_loops_of_a_file_are_counted_apart(made, manela_here):
    home = ("--home", made / "alpha")
    (made / "edges.csv").write_text("source,target,weight\nann,bob,1\nbob,bob,1\nalone\n")
    done = manela_here("agent", "edges", "import", made / "edges.csv", *home)
    assert done.stdout == "added 1 edges, 1 nodes without edges, 1 self-loops left out\n"
    assert manela_here("agent", "edges", "list", *home).stdout == "alone\nann,bob\n"


def test_edges_are_written_to_stdout_or_a_file(made, manela_here):
    home = ("--home", made / "alpha")
    assert manela_here("agent", "edges", "add", "ann", "bob@gamma", *home).returncode == 0
    done = manela_here("agent", "edges", "export", "-", *home, cwd=made)
    assert (done.returncode, done.stdout) == (0, "ann,bob@gamma\n")
    assert not (made / "-").exists()
    # gamma is not a peer yet, but has edges
    assert manela_here("agent", "edges", "export", made / "out.csv", "--peer", "gamma", *home).returncode == 0
    assert (made / "out.csv").read_text() == "ann,bob@gamma\n"


def test_a_removed_node_is_not_taken_again_until_it_is_allowed(made, manela_here):
    home = ("--home", made / "alpha")
    (made / "edges.csv").write_text("ann,bob\nbob,carl\ncarl,dora\n")
    assert manela_here("agent", "edges", "import", made / "edges.csv", *home).returncode == 0
    (made / "alpha" / "trace.jsonl").touch()
    first, second = manela_here("agent", "node", "remove", "ann", *home).stdout.splitlines()
    assert first == "removed ann, with 1 edges"
    assert "trace.jsonl: may still hold the name" in second
    (made / "list").write_text("# left\ndora\nnobody\n")
    done = manela_here("agent", "node", "deny", made / "list", *home)
    assert done.stdout.splitlines()[0] == "denied 2 names; removed 1 nodes, with 1 edges"
    done = manela_here("agent", "edges", "import", made / "edges.csv", *home)
    assert done.stdout == "added 1 edges, 2 lines with erased nodes left out\n"
    one_line(manela_here("agent", "edges", "add", "ann", "bob", *home), "a node of this edge was erased")
    shown = manela_here("agent", "node", "hash", "ann", *home).stdout.strip()
    assert (
        manela_here("agent", "node", "allow", "ann", *home).stdout
        == f"allowed ann ({shown}); the next import may take it\n"
    )
    one_line(manela_here("agent", "node", "allow", "ann", *home), "was not erased or denied")
    assert manela_here("agent", "edges", "add", "ann", "bob", *home).returncode == 0
    one_line(manela_here("agent", "node", "remove", "nobody", *home), "is not a node of this host")
    assert manela_here("agent", "node", "receipts", *home).stdout == ""


def test_private_nodes_are_listed(made, manela_here):
    home = ("--home", made / "alpha")
    assert manela_here("agent", "node", "private", "bob", "ann", *home).stdout == "2 nodes are private\n"
    assert manela_here("agent", "node", "private", *home).stdout == "ann\nbob\n"
    assert manela_here("agent", "node", "private", "--public", "bob", *home).stdout == "1 nodes are public\n"
    assert manela_here("agent", "node", "private", *home).stdout == "ann\n"
    one_line(manela_here("agent", "node", "private", "--public", *home), "needs the names of nodes")


def test_edges_with_an_unknown_peer_are_refused(made, manela_here):
    home = ("--home", made / "alpha")
    one_line(manela_here("agent", "edges", "list", "--peer", "zeta", *home), "zeta: is not a peer")
    one_line(manela_here("agent", "edges", "export", made / "out.csv", "--peer", "zeta", *home), "zeta: is not a peer")
    assert not (made / "out.csv").exists()
    certificate = made / "beta" / "certificate.pem"
    assert manela_here("agent", "peer", "add", "beta", "127.0.0.1:7447", certificate, *home).returncode == 0
    done = manela_here("agent", "edges", "list", "--peer", "beta", *home)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_audit_has_what_operators_did_without_names_of_persons(made, manela_here):
    home = ("--home", made / "alpha")
    certificate = made / "beta" / "certificate.pem"
    (made / "edges.csv").write_text("ann,bob\nbob,carl@beta\n")
    for command in (
        ("peer", "add", "beta", "127.0.0.1:7447", certificate),
        ("peer", "add", "beta", "127.0.0.1:7449"),
        ("edges", "import", made / "edges.csv"),
        ("edges", "add", "ann", "carl@beta"),
        ("edges", "remove", "ann", "bob"),
        ("node", "private", "bob"),
        ("node", "remove", "ann"),
        ("node", "allow", "ann"),
        ("learn", "--rounds", "3"),
        ("learn", "--anew"),
        ("backup", made / "alpha.tar"),
        ("renew",),
        ("renew", "--use"),
        ("peer", "remove", "beta", "--certificate", certificate),
        ("peer", "remove", "beta"),
        ("restore", made / "alpha.tar"),
    ):
        done = manela_here("agent", *command, *home)
        assert done.returncode == 0, done.stderr
    with Store(made / "alpha") as store:
        store.audit([("beta", "malformed", "ü")])
    done = manela_here("agent", "audit", "--json", "--since", "2026-01-01", *home)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lines[0]["kind"], lines[0]["peer"], lines[0]["detail"]) == ("refusal", "beta", "ü")
    assert [line["action"] for line in lines[1:]] == [
        "restored", "learn", "learn", "node allowed", "node removed", "nodes made private", "edges removed",
        "edge added", "edges imported", "peer changed", "peer added",
    ]  # fmt: skip
    assert {line["user"] for line in lines[1:]} == {pwd.getpwuid(os.getuid()).pw_name}
    assert not re.search(r"\b(ann|bob|carl)\b", done.stdout)
    shown = manela_here("agent", "audit", *home).stdout
    assert "from a file: added 2 edges" in shown
    kept = next((made / "alpha").glob("before-restore-*"))
    (kept / "agent.toml").rename(kept / "kept.toml")
    with Store(kept) as store:
        actions = [action.action for action in read_actions(store, 0)]
    assert actions[-5:] == ["backup", "certificate", "certificate", "certificate removed", "peer removed"]
    assert manela_here("agent", "audit", "--since", "9999-01-01", *home).stdout == ""
    one_line(manela_here("agent", "audit", "--since", "soon", *home), "must be a date or a time")


def test_an_audit_of_no_lines_is_refused(made, manela_here):
    for most in ("0", "-1"):
        one_line(manela_here("agent", "audit", "--most", most, "--home", made / "alpha"), "--most")


@pytest.mark.parametrize("address", ["0.0.0.0:17446", "[::]:17446"])
def test_an_invitation_to_every_address_is_refused(made, manela_here, address):
    home = ("--home", made / "alpha")
    one_line(manela_here("agent", "invite", "--address", address, *home), f"that others can reach, got {address}")
    assert (
        "@mail.example.org:7446#" in manela_here("agent", "invite", "--address", "mail.example.org:7446", *home).stdout
    )


def test_an_edge_that_cannot_be_meant_is_refused(made, manela_here):
    home = ("--home", made / "alpha")
    certificate = made / "beta" / "certificate.pem"
    assert manela_here("agent", "edges", "add", "old@beta", *home).returncode == 0
    assert manela_here("agent", "peer", "add", "beta", "127.0.0.1:7447", certificate, *home).returncode == 0
    one_line(manela_here("agent", "edges", "add", "ann@beta", "bob", *home), "swap the two")
    one_line(manela_here("agent", "edges", "add", "ann@alpha", "bob", *home), "expected 'ann'")
    for other in ("ann", "ann@alpha"):
        one_line(manela_here("agent", "edges", "add", "ann", other, *home), "an edge must have two different ends")
    assert manela_here("agent", "edges", "list", *home).stdout == "old@beta\n"
    assert manela_here("agent", "node", "remove", "old@beta", *home).returncode == 0


@pytest.mark.parametrize("most", [500, 2])
def test_the_table_of_exposure_has_two_columns_and_says_where_it_is_of_a_sample(made, manela_here, monkeypatch, most):
    from manela.hosts import exposure
    from manela.hosts.folder.trace import write_disclosure

    random, home = np.random.default_rng(0), made / "alpha"
    (made / "edges.csv").write_text("a,b\na,x@beta\nb,c\nc,d\nd,e\n")
    assert manela_here("agent", "edges", "import", made / "edges.csv", "--home", home).returncode == 0
    with (home / "trace.jsonl").open("w") as file:
        for phase in (START, SMOOTH):
            for number in range(3):
                own = {"kind": "own", "phase": phase, "number": number, "nodes": list("abcde")}
                file.write(write_disclosure({**own, "rows": random.normal(size=(5, 1, 1, 4))}) + "\n")
                shown = {"kind": "shown", "peer": "beta", "nodes": ["x"], "rows": random.normal(size=(1, 1, 1, 4))}
                file.write(write_disclosure(shown) + "\n")
    monkeypatch.setattr(exposure, "_MOST_OTHERS", most)
    done = manela_here("agent", "exposure", "--home", home)
    assert done.returncode == 0, done.stderr
    says_sample = "a sample is attacked: 1 of these and 3 of 5 own nodes; the numbers are estimates" in done.stdout
    assert says_sample == (most == 2)
    *table, verdict = done.stdout.splitlines()[1 + says_sample :]
    assert verdict.startswith("verdict: this host can tell edges of others")
    assert manela_here("agent", "exposure", "--limit", "1", "--home", home).returncode == 0
    above = manela_here("agent", "exposure", "--limit", "0", "--home", home)
    assert above.returncode == 1
    assert above.stdout.splitlines()[-1].endswith("and the limit is 0")
    rows = dict(re.split("  +", line) for line in table)
    assert {"chance", "regression by 0.001, changes of sweeps of the start"} < set(rows)
    assert len({line.index(rows[name]) for name, line in zip(rows, table, strict=True)}) == 1


def test_a_host_that_has_not_run_says_so(made, manela_here, manela):
    home = ("--home", made / "alpha")
    assert "has not run yet" in manela_here("agent", "status", *home).stdout
    assert json.loads(manela_here("agent", "status", "--json", *home).stdout) == {"running": False}
    one_line(manela_here("agent", "export", made / "out.csv", *home), "there are no vectors yet")
    one_line(manela("agent", "run", *home), "this host has no nodes yet")
    one_line(manela_here("agent", "status", "--home", made / "nowhere"), "does not hold a host")
    assert manela_here("agent", "audit", *home).stdout == ""


def test_vectors_on_stdout_are_nothing_but_a_table(made, manela):
    from manela.hosts.folder.vectors import VectorsFile
    from manela.hosts.state.host import Saved

    assert manela("agent", "edges", "add", "ann", "bob", "--home", made / "alpha").returncode == 0
    VectorsFile(made / "alpha").save(Saved(["ann"], np.ones((1, 1, 2), np.float32), 3, 3, 9))
    done = manela("agent", "export", "-", "--home", made / "alpha")
    assert (done.returncode, done.stdout) == (0, "node,d0,d1\nann,1,1\n")


def test_a_wrong_configuration_ends_the_start_with_a_line(made, manela_here, manela):
    file = made / "alpha" / "agent.toml"
    file.write_text(file.read_text().replace("# window = 10", "window = 0"))
    one_line(manela("agent", "run", "--home", made / "alpha"), "window must be a whole number")


def test_federate_refuses_what_cannot_be(tmp_path, manela_here):
    out = tmp_path / "out.npz"
    one_line(manela_here("federate", "sbm", "--hosts", "0", "-o", out), "hosts must be 1 to 1,024")
    one_line(manela_here("federate", "sbm", "--by", tmp_path / "nothing", "-o", out), "a file of lines `node host`")
    file = tmp_path / "hosts.txt"
    file.write_text("0 east\n")
    one_line(manela_here("federate", "sbm", "--by", file, "-o", out), "names no host for 1,023 node(s), such as '1'")
    file.write_text("0 east west\n")
    one_line(manela_here("federate", "sbm", "--by", file, "-o", out), "line 1: must be `node host`, got 3 fields")
    one_line(manela_here("federate", "sbm", "-o", tmp_path / "out.xyz"), "out.xyz")


def test_an_old_status_tells_its_age(manela_here, made):
    from manela.hosts.folder.home import only_one

    home = made / "alpha"
    status = {
        "name": "alpha", "state": "learning", "trouble": "", "round": 3, "rounds": 9, "pairs": 1, "nodes": 2,
        "pairs_per_second": 5, "sent": 0, "received": 0, "refusals": {}, "updated": time.time() - 600,
        "expires": time.time() + 5.5 * 86400, "peers": {},
    }  # fmt: skip
    (home / "status.json").write_text(json.dumps(status))
    with only_one(home):
        found = manela_here("agent", "status", "--home", home).stdout
    assert "are 10 min old: the daemon is stuck, or its disk is full" in found
    assert "warning: this host's certificate expires in 5 days" in found
    assert "not running" in manela_here("agent", "status", "--home", home).stdout
    (home / "status.json").unlink()


def test_a_status_says_whether_vectors_can_be_compared_and_are_believed(manela_here, made):
    from manela.hosts.folder.home import only_one

    home = made / "alpha"
    peer = {"state": "here", "trouble": "", "sent": 0, "received": 0, "expires": None}
    status = {
        "name": "alpha", "state": "learning", "trouble": "", "round": 3, "rounds": 9, "pairs": 1, "nodes": 2,
        "pairs_per_second": 5, "sent": 0, "received": 0, "refusals": {}, "updated": time.time(), "expires": None,
        "peers": {
            "beta": {**peer, "believed": True, "comparable": True, "alike": 0.98},
            "delta": {**peer, "believed": True, "comparable": False, "alike": -0.1},
            "gamma": {**peer, "believed": False, "comparable": False, "alike": -0.4},
            "omega": {**peer, "believed": True, "comparable": None, "alike": None},
        },
    }  # fmt: skip
    (home / "status.json").write_text(json.dumps(status))
    with only_one(home):
        lines = manela_here("agent", "status", "--home", home).stdout.splitlines()
    found = {line.split()[1]: line.split(maxsplit=2)[2] for line in lines if line.startswith("vectors ")}
    assert found == {
        "beta": "comparable: yes, 0.98", "delta": "comparable: no, -0.10", "gamma": "not believed, and not used",
    }  # fmt: skip
    (home / "status.json").unlink()


def test_rounds_or_a_new_start_can_be_asked_for(made, manela_here):
    home = ("--home", made / "alpha")
    assert manela_here("agent", "learn", "--rounds", 3, *home).stdout == "requested 3 more rounds\n"
    one_line(manela_here("agent", "learn", *home), "rounds must be given, or --anew in its place")
    one_line(manela_here("agent", "learn", "--rounds", 3, "--anew", *home), "rounds must be given, or --anew in its")
    assert manela_here("agent", "learn", "--anew", *home).stdout == "requested a new start\n"
    config = made / "alpha" / "agent.toml"
    text = config.read_text()
    config.write_text(re.sub(r'# start = "spectral"', 'start = "random"', text))
    one_line(manela_here("agent", "learn", "--anew", *home), "a new start needs a start by spectral or neighbours")
    config.write_text(text)


def test_answers_need_a_host_and_an_address_to_be_asked_at(tmp_path, manela_here):
    one_line(manela_here("agent", "serve", "--home", tmp_path / "nope"), "does not hold a host; make one with")
    assert manela_here("agent", "init", "alpha", "--home", tmp_path / "alpha").returncode == 0
    one_line(manela_here("agent", "serve", "--home", tmp_path / "alpha"), "watch must be an address of this machine")


def test_a_new_certificate_is_used_only_with_its_key(made, manela_here):
    home = made / "alpha"
    before = [(home / name).read_bytes() for name in ("key.pem", "certificate.pem")]
    assert manela_here("agent", "renew", "--home", home).returncode == 0
    kept = (home / "next-key.pem").read_bytes()
    (home / "next-key.pem").unlink()
    one_line(manela_here("agent", "renew", "--use", "--home", home), "does not belong to the certificate")
    assert [(home / name).read_bytes() for name in ("key.pem", "certificate.pem")] == before
    assert not (home / "old-certificate.pem").exists()
    (home / "next-key.pem").write_bytes(kept)
    (home / "next-key.pem").chmod(0o644)
    assert manela_here("agent", "renew", "--use", "--home", home).returncode == 0
    assert (home / "key.pem").read_bytes() == kept
    assert (home / "key.pem").stat().st_mode & 0o077 == 0
    assert (home / "old-certificate.pem").read_bytes() == before[1]


def test_address_and_size_of_a_peer_are_changed_without_its_certificate(made, manela_here):
    home = ("--home", made / "alpha")
    one_line(manela_here("agent", "peer", "add", "beta", "127.0.0.1:7449", *home), "beta: is not a peer")
    certificate = made / "beta" / "certificate.pem"
    assert manela_here("agent", "peer", "add", "beta", "127.0.0.1:7447", certificate, *home).returncode == 0
    assert manela_here("agent", "peer", "add", "beta", "127.0.0.1:7449", *home).stdout == "changed beta\n"
    assert manela_here("agent", "peer", "add", "beta", "--nodes", "12", *home).stdout == "changed beta\n"
    shown = manela_here("agent", "peer", "list", *home).stdout
    assert shown.startswith("beta  127.0.0.1:7449, 12 nodes by the operator\n")
    one_line(manela_here("agent", "peer", "add", "beta", *home), "a peer must be given by the line")
    one_line(manela_here("agent", "peer", "remove", "gamma", "--fingerprint", "A" * 14, *home), "gamma: is not a peer")


def test_a_certificate_that_has_ended_is_told_when_it_is_added_and_listed(made, manela_here, monkeypatch):
    from manela.hosts.folder import identity

    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    monkeypatch.setattr(identity, "expiry_of", lambda certificate: yesterday)
    home = ("--home", made / "alpha")
    added = manela_here("agent", "peer", "add", "beta", "127.0.0.1:7447", made / "beta" / "certificate.pem", *home)
    assert added.stdout.startswith(f"warning: this certificate expired on {yesterday:%Y-%m-%d}; beta must renew it")
    assert f"    expired on {yesterday:%Y-%m-%d}  " in manela_here("agent", "peer", "list", *home).stdout


@pytest.mark.parametrize(
    "command", [["backup", "b.tar"], ["invite"], ["renew"], ["export", "v.csv"], ["edges", "list"]]
)
def test_a_folder_without_a_host_is_told_by_every_command(tmp_path, manela_here, command):
    done = manela_here("agent", *command, "--home", tmp_path / "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "does not hold a host" in done.stderr or "there are no vectors yet" in done.stderr


def test_a_backup_does_not_go_to_standard_output(made, manela_here):
    one_line(manela_here("agent", "backup", "-", "--home", made / "alpha", cwd=made), "a backup must be a file")
    assert not (made / "-").exists()
