import multiprocessing
import sqlite3

import numpy as np
import pytest

from manela.errors import SourceError
from manela.sources.edges import Edges
from manela.sources.state import ImportState


def ties(*edges):
    own, other, weights = zip(*edges, strict=True)
    return Edges(own, other, np.array(weights))


def all_of(state):
    return {
        pair: weight
        for batch in state.read_edges()
        for pair, weight in zip(zip(batch.own, batch.other, strict=True), batch.weights.tolist(), strict=True)
    }


def test_what_is_committed_is_there_next_time_and_the_rest_is_not(tmp_path):
    with ImportState(tmp_path / "state", "mail") as state:
        state.put("offset", {"a": [1, 2]})
        state.keep_seen(np.array([3, 5], dtype=np.uint64))
        state.add(ties(("a", "b", 1.0)), True)
        state.commit()
        state.put("offset", 7)
        state.add(ties(("a", "c", 1.0)), True)
    with ImportState(tmp_path / "state", "mail") as state:
        assert state.get("offset") == {"a": [1, 2]}
        assert state.read_seen().tolist() == [3, 5]
        assert all_of(state) == {("a", "b"): 1.0}


def test_weights_add_up_or_take_the_place_of_those_before(tmp_path):
    for adds, expected in ((True, {("a", "b"): 5.0}), (False, {("a", "b"): 3.0})):
        path = tmp_path / f"state-{adds}"
        with ImportState(path, "x") as state:
            state.add(ties(("a", "b", 2.0)), adds)
            state.commit()
        with ImportState(path, "x") as state:
            state.add(ties(("a", "b", 1.0)), adds)
            state.add(ties(("a", "b", 2.0)), adds)
            assert all_of(state) == expected


def test_edges_that_are_gone_are_named_unless_readings_add(tmp_path):
    for adds in (True, False):
        path = tmp_path / f"state-{adds}"
        with ImportState(path, "x") as state:
            state.add(ties(("a", "b", 2.0), ("a", "c", 1e-9)), adds)
            assert state.remove_old(adds, 1e-6) == [("a", "c")]
            state.commit()
        with ImportState(path, "x") as state:
            state.add(ties(("a", "d", 1.0)), adds)
            assert state.remove_old(adds, 1e-6) == ([] if adds else [("a", "b")])


def test_a_state_of_another_import_and_a_file_that_is_none_are_refused(tmp_path):
    with ImportState(tmp_path / "state", "mail") as state:
        state.commit()
    with pytest.raises(SourceError, match="another import"):
        ImportState(tmp_path / "state", "gpg")
    (tmp_path / "text").write_text("hello, this is no database at all" * 40)
    with pytest.raises(SourceError, match="cannot be used"):
        ImportState(tmp_path / "text", "gpg")
    (tmp_path / "link").symlink_to(tmp_path / "state")
    with pytest.raises(Exception, match="symbolic link"):
        ImportState(tmp_path / "link", "mail")


def test_a_state_of_a_later_version_is_refused(tmp_path):
    database = sqlite3.connect(tmp_path / "state")
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(SourceError, match="must be of version 1, got 99"):
        ImportState(tmp_path / "state", "x")


def _hold(path, held, done):
    with ImportState(path, "x"):
        held.set()
        done.wait(60)


def test_two_imports_do_not_run_at_the_same_time(tmp_path):
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "state", held, done))
    other.start()
    assert held.wait(60)
    with pytest.raises(SourceError, match="another import"):
        ImportState(tmp_path / "state", "x", patience=0.1)
    done.set()
    other.join(60)
    with ImportState(tmp_path / "state", "x"):
        pass


def test_a_database_of_another_kind_is_left_alone(tmp_path):
    database = sqlite3.connect(tmp_path / "ledger.db")
    database.execute("CREATE TABLE transfers (a, b)")
    database.close()
    before = (tmp_path / "ledger.db").read_bytes()
    with pytest.raises(SourceError, match="another kind"):
        ImportState(tmp_path / "ledger.db", "x")
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_names_to_leave_out_are_stored_nowhere(tmp_path):
    def is_left_out(name):
        return name == "ann"

    with ImportState(tmp_path / "state", "x") as state:
        state.leaves_out = is_left_out
        state.add(ties(("ann", "b", 1.0), ("a", "ann", 1.0), ("a", "b", 2.0)), True)
        assert state.left_out == 2
        state.put("mark", {"q1": "ann", "ann": 1, "q2": "bob", "pages": [{"name": "ann", "page": 1}, {"name": "bob"}]})
        assert state.get("mark") == {"q2": "bob", "pages": [{"name": "bob"}]}
        assert all_of(state) == {("a", "b"): 2.0}


def test_names_that_are_purged_leave_nothing_in_the_file(tmp_path):
    with ImportState(tmp_path / "state", "x") as state:
        state.add(ties(("ann.wintermute", "b", 1.0), ("a", "ann.wintermute", 1.0), ("a", "b", 2.0)), True)
        state.put("mark", [["ann.wintermute", "b"], ["c", "d"]])
        state.put("other", 7)
        state.keep_seen(np.array([3, 5], dtype=np.uint64))
        state.commit()
    assert b"ann.wintermute" in (tmp_path / "state").read_bytes()
    with ImportState(tmp_path / "state", None) as state:
        assert state.purge(lambda name: name == "ann.wintermute") == 3
        assert state.purge(lambda name: name == "ann.wintermute") == 0
        state.scrub()
        assert all_of(state) == {("a", "b"): 2.0}
        assert (state.get("mark"), state.get("other"), state.read_seen().tolist()) == ([["c", "d"]], 7, [3, 5])
    assert b"ann.wintermute" not in (tmp_path / "state").read_bytes()
    with ImportState(tmp_path / "state", "x"):
        pass
