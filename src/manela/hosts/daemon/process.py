"""The process of a daemon: the command that starts it and the main function that it runs."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from manela.system.signals import run_to_status, terminate

_TRACE, _WHILE_STDIN = "--trace", "--while-stdin"


def make_command(home: Path, *, trace: bool = False, while_stdin: bool = False) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the environment of a process that runs the daemon of a home.

    With `trace` it records what other hosts disclose to it, with `while_stdin` it stops when its standard input ends.
    """
    flags = [flag for flag, given in ((_TRACE, trace), (_WHILE_STDIN, while_stdin)) if given]
    # threads of a linear algebra library would compete with each other, and with those of other daemons
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **os.environ}
    # -P: files in the current folder must not be imported instead of a library
    return [sys.executable, "-P", "-m", "manela.hosts.daemon.process", str(home), *flags], environment


def exec_daemon(home: Path, *, trace: bool, while_stdin: bool) -> None:
    """Replace this process by the daemon, which frees the memory of this one."""
    arguments, environment = make_command(home, trace=trace, while_stdin=while_stdin)
    sys.stdout.flush()
    os.execve(arguments[0], arguments, environment)


def main() -> None:
    """Run the daemon of the home in the first argument."""
    signal.signal(signal.SIGTERM, terminate)

    def command() -> None:
        from manela.hosts.daemon.daemon import run

        run(Path(sys.argv[1]), trace=_TRACE in sys.argv[2:], while_stdin=_WHILE_STDIN in sys.argv[2:])

    sys.exit(run_to_status(command))


if __name__ == "__main__":
    main()
