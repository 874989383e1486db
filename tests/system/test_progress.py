"""What a run tells while it runs."""

import dataclasses
import io
import sys
import types
from importlib.machinery import ModuleSpec

import pytest

from manela.system.progress import Progress, RunBar, format_seconds, is_watched, report_download


def progress(pairs=0, seconds=0.0):
    return Progress(1, 10, pairs, seconds, 9.0, 0.025, -1.0)


@pytest.mark.parametrize(("pairs", "seconds", "speed"), [(100, 4.0, 25.0), (0, 4.0, 0.0), (100, 0.0, 0.0), (0, 0, 0)])
def test_the_speed_is_pairs_over_seconds_and_nothing_before_time_has_passed(pairs, seconds, speed):
    assert progress(pairs, seconds).pairs_per_second == speed


def test_whoever_is_told_cannot_change_it():
    with pytest.raises(dataclasses.FrozenInstanceError):
        progress().round = 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def look(monkeypatch):
    """Puts a terminal, or what nobody looks at, in the place of standard error; to be called in the test itself."""

    def put(is_terminal):
        monkeypatch.setattr(sys, "stderr", Terminal() if is_terminal else io.StringIO())
        monkeypatch.delitem(sys.modules, "IPython", raising=False)
        monkeypatch.setenv("COLUMNS", "120")
        return sys.stderr

    return put


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"), (0.4, "0:00"), (9, "0:09"), (59.6, "1:00"), (90, "1:30"), (3599, "59:59"), (3599.6, "1:00:00"),
        (3661, "1:01:01"), (360_000, "100:00:00"), (float("inf"), "-:--"),
    ],
)  # fmt: skip
def test_times_are_written_as_on_a_clock(seconds, text):
    assert format_seconds(seconds) == text


def test_a_terminal_is_watched(look):
    look(is_terminal=True)
    assert is_watched()


def test_nobody_watches_a_file_or_what_has_no_terminal_at_all(look, monkeypatch):
    look(is_terminal=False)
    assert not is_watched()
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_watched()


@pytest.mark.parametrize(
    ("module", "has_widgets", "watched"),
    [("ipykernel.zmqshell", True, True), ("ipykernel.zmqshell", False, False), ("IPython.terminal", True, False)],
)
def test_a_notebook_that_can_show_a_bar_is_watched_and_a_shell_without_a_terminal_is_not(
    look, monkeypatch, module, has_widgets, watched
):
    look(is_terminal=False)
    shell = type("Shell", (), {"__module__": module})()
    python, widgets = types.ModuleType("IPython"), types.ModuleType("ipywidgets")
    python.get_ipython = lambda: shell
    widgets.__spec__ = ModuleSpec("ipywidgets", None)
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets if has_widgets else None)
    assert is_watched() is watched


def test_a_bar_that_is_not_shown_writes_nothing_and_wants_to_know_nothing(look):
    nobody = look(is_terminal=False)
    with RunBar(False, "a title") as run:
        assert run.report is None
    assert nobody.getvalue() == ""


def test_a_bar_shows_its_title_as_it_is_and_where_the_run_stands(look):
    terminal = look(is_terminal=True)
    with RunBar(True, "[red]a title") as run:
        run.report(Progress(3, 40, 5_000_000, 2.0, 90.0, 0.0125, -1.5))
    text = terminal.getvalue()
    assert "[red]a title" in text
    for part in ("round 3/40", "2.5 M pairs/s", "1:30 left", "α 0.01250", "objective -1.500"):
        assert part in text


def test_a_bar_ends_with_an_error_and_lets_it_through(look):
    look(is_terminal=True)
    with pytest.raises(ZeroDivisionError), RunBar(True) as run:
        raise ZeroDivisionError
    assert run.bar.finished is False
    assert not run.bar.live.is_started


def test_a_download_is_told_to_nobody_where_nobody_looks(look):
    look(is_terminal=False)
    assert report_download("ppi") is None


def test_a_download_is_told_on_one_line_that_ends_when_all_has_come(look):
    terminal = look(is_terminal=True)
    report = report_download("ppi")
    report(500_000, 2_000_000)
    report(2_000_000, 2_000_000)
    assert terminal.getvalue() == "\rppi: 0.5 of 2.0 MB\rppi: 2.0 of 2.0 MB\n"


def test_a_download_of_unknown_size_is_told_by_what_has_come(look):
    terminal = look(is_terminal=True)
    report_download("ppi")(500_000, 0)
    assert terminal.getvalue() == "\rppi: 0.5 MB"
