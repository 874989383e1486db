"""How a process ends that fails."""

import signal
import subprocess
import sys

import pytest

from manela.errors import GraphError, OutputError, UnknownNodeError
from manela.system.signals import fail, run_to_status, terminate


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


def test_an_interrupt_of_code_in_a_text_has_the_status_of_any_other(tmp_path):
    (tmp_path / "command.py").write_text(
        "import sys\nfrom manela.system.signals import run_to_status\n"
        "sys.exit(run_to_status(lambda: exec('raise KeyboardInterrupt')))"
    )
    done = subprocess.run([sys.executable, "-m", "command"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


COMPILING = """
import signal, sys, time, types
from manela.system.signals import run_to_status, safe_interrupts

llvmlite = types.ModuleType("llvmlite.binding")
exec("import signal\\ndef compile():\\n    signal.raise_signal(signal.SIGINT)\\n    print('compiled', flush=True)",
     llvmlite.__dict__)

def command():
    llvmlite.compile()
    {after}

with safe_interrupts():
    status = run_to_status(command)
{end}
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("after", "end", "status"),
    [("while True: time.sleep(1)", "", 130), ("", "time.sleep(0.3)", 0)],
    ids=["in the middle", "at the end"],
)
def test_an_interrupt_waits_for_what_is_compiled_and_ends_with_the_command(after, end, status):
    code = COMPILING.format(after=after, end=end)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"compiled\n", b"")


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
        "import sys\nfrom manela.system.signals import run_to_status\n"
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
