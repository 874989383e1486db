"""What a daemon tells of itself."""

import time

import pytest

from manela.hosts.daemon.status import Speed, find_expiry, warn_of_expiry, write_status


def test_speed_is_kept_in_bars_for_a_day(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("manela.hosts.daemon.status.time.time", lambda: clock[0])
    monkeypatch.setattr("manela.hosts.daemon.status.time.monotonic", lambda: clock[0])
    speed, pairs = Speed(0), 0
    for _ in range(2 * 86400 // 60):
        clock[0] += 60.0
        pairs += 6000
        speed.look(pairs)
    assert speed.now == 100.0
    bars = speed.history(pairs)
    assert len(bars) == 289
    assert {value for _, value in bars[:-1]} == {100}
    assert bars[-1][0] - bars[0][0] == pytest.approx(86400, abs=301)
    speed.look(pairs - 5)  # a host that goes back to what was saved has no negative speed
    assert speed.history(pairs - 5)[-1][1] >= 0


def test_certificates_that_end_soon_are_told(monkeypatch):
    now, day = time.time(), 86400.0
    status = {
        "expires": now + 29.5 * day,
        "peers": {"beta": {"expires": now + 31 * day}, "gamma": {"expires": now - day}, "delta": {"expires": None}},
    }
    assert warn_of_expiry(status) == [
        "this host's certificate expires in 29 days",
        "the certificate of gamma has expired",
    ]
    assert find_expiry([]) is None


def test_a_status_does_not_follow_a_link(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "status.part").symlink_to(tmp_path / "mine")
    write_status(tmp_path / "status.json", {"a": 1})
    assert (tmp_path / "mine").read_text() == "mine"
    write_status(tmp_path / "status.json", {"a": 1})
    assert (tmp_path / "status.json").read_text() == '{"a": 1}'
    assert (tmp_path / "status.json").stat().st_mode & 0o777 == 0o600
