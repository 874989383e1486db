"""How a process ends that fails."""

import signal
import subprocess
import sys

import pytest

from manela.errors import GraphError, OutputError, UnknownNodeError
from manela.failure import fail, run_to_status, terminate


def raising(error):
    def command():
        raise error

    return command


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (3, 3), (True, 1)])
def test_a_command_that_ends_says_its_status(returned, status, capsys):
    assert run_to_status(lambda: returned) == status
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (GraphError("a network must have an edge"), "error: a network must have an edge"),
        (UnknownNodeError("no node has the id 'x'"), "error: no node has the id 'x'"),
        (OutputError("x.npz: cannot be written"), "error: x.npz: cannot be written"),
        (FileNotFoundError(2, "No such file", "x.csv"), "error: x.csv: No such file"),
        (OSError("strange"), "error: the system: strange"),
        (OSError("x" * 1000), "error: the system: " + "x" * 188),
        (MemoryError(), "error: not enough memory: use fewer threads"),
        (GraphError("one\ntwo\nthree"), "error: one …"),
        (GraphError(""), "error: "),
        (GraphError("a\udcffb"), "error: a?b"),
    ],
)
def test_what_the_user_can_fix_is_one_line_and_status_2(error, line, capsys):
    assert run_to_status(raising(error), memory_hint=": use fewer threads") == 2
    assert capsys.readouterr().err == line + "\n"


def test_an_interrupt_is_no_failure_with_words(capsys):
    assert run_to_status(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [ZeroDivisionError(), SystemExit(5), AssertionError()])
def test_what_is_no_fault_of_the_user_is_not_hidden(error):
    with pytest.raises(type(error)):
        run_to_status(raising(error))


def test_a_failure_is_told_once_and_has_status_2(capsys):
    assert fail("x") == 2
    assert capsys.readouterr() == ("", "error: x\n")


def test_sigterm_ends_as_a_signal_does():
    with pytest.raises(SystemExit) as caught:
        terminate(signal.SIGTERM, None)
    assert caught.value.code == 143


def test_a_reader_that_has_gone_is_no_failure_with_words():
    code = (
        "import sys\nfrom manela.failure import run_to_status\n"
        "def command():\n for _ in range(100_000): print('x' * 100)\n"
        "sys.exit(run_to_status(command))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "x" * 100 + "\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == 1
