"""The record of what operators did, beside what was refused."""

import os
import pwd

import pytest

from manela.errors import ParameterError
from manela.hosts.folder import audit
from manela.hosts.folder.audit import (
    check_since,
    read_actions,
    read_audit,
    record,
    record_settings,
    take_new_actions,
)
from manela.hosts.folder.config import Config
from manela.hosts.folder.store import Store
from manela.hosts.state.terms import PeerOptions


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create="alpha") as found:
        yield found


def test_an_action_has_the_user_of_the_process_whatever_the_environment_says(store, monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody")
    record(store, "peer added", "beta")
    (action,) = read_actions(store, 0)
    assert action[2:] == (pwd.getpwuid(os.getuid()).pw_name, "peer added", "beta")
    monkeypatch.setattr(audit.os, "getuid", lambda: 2**31 - 7)
    record(store, "peer added", "x\n" + 1000 * "y")
    assert read_actions(store, action.id)[0][2:] == (str(2**31 - 7), "peer added", "x?" + 498 * "y")


def test_refusals_and_actions_are_one_list_with_the_latest_first(store):
    record(store, "first")
    store.audit([("beta", "malformed", "second")])
    record(store, "third", user="peer beta")
    lines = list(read_audit(store, 10))
    assert [line.get("action") or line["detail"] for line in lines] == ["third", "second", "first"]
    assert lines[0] == {
        "time": lines[0]["time"],
        "kind": "action",
        "user": "peer beta",
        "action": "third",
        "detail": "",
    }
    assert list(lines[1])[1:] == ["kind", "peer", "reason", "detail"]
    assert list(read_audit(store, 2)) == lines[:2]
    assert list(read_audit(store, 10, "9999")) == []


def test_a_flood_of_refusals_does_not_push_out_actions_and_these_are_bounded_too(store):
    for number in range(5):
        record(store, str(number), most=3)
    for number in range(20):
        record(store, str(number), user="peer beta", most=1)
    for number in range(20):
        store.audit([("beta", "malformed", str(number))], most=4)
    assert [action.action for action in read_actions(store, 0)] == ["2", "3", "4", "19"]


def test_changed_settings_are_recorded_at_a_start(store):
    config = Config("alpha", "127.0.0.1:1", {"dimensions": 8})
    record_settings(store, config.list_settings())
    record_settings(store, config.list_settings())
    assert read_actions(store, 0) == []
    changed = Config("alpha", "127.0.0.1:1", {"dimensions": 8, "window": 5}, peers=PeerOptions(noise=0.5))
    record_settings(store, changed.list_settings())
    (action,) = read_actions(store, 0)
    assert action.detail == "learning.window was not set, is 5; peers.noise was 1.0, is 0.5"


def test_actions_are_taken_once(store):
    record(store, "a")
    record(store, "b")
    assert [action.action for action in take_new_actions(store)] == ["a", "b"]
    assert take_new_actions(store) == []
    record(store, "c")
    assert [action.action for action in take_new_actions(store)] == ["c"]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("", ""),
        ("2026-05-31", "2026-05-31T00:00:00.000000+00:00"),
        ("2026-05-31T12:00+02:00", "2026-05-31T10:00:00.000000+00:00"),
    ],
)
def test_a_time_is_that_of_utc(text, time):
    assert check_since(text) == time


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "0001-01-01T00:00+05:00"])
def test_a_time_that_is_none_is_refused(text):
    with pytest.raises(ParameterError, match="since must be a date or a time"):
        check_since(text)
