"""The process of a daemon: how it is started, and what runs in it; it holds nothing of the command line."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from manela.failure import run_to_status, terminate

_TRACE, _WHILE_STDIN = "--trace", "--while-stdin"


def make_command(home: Path, *, trace: bool = False, while_stdin: bool = False) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment of a process that runs the daemon of a folder.

    With `trace` it writes down what other hosts tell it, with `while_stdin` it ends when its standard input does.
    """
    flags = [flag for flag, given in ((_TRACE, trace), (_WHILE_STDIN, while_stdin)) if given]
    # threads of a library of linear algebra would wait for each other, and for those of other daemons
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **os.environ}
    # -P: what lies in the folder where it is started is not imported in the place of a library
    return [sys.executable, "-P", "-m", "manela.agents.process", str(home), *flags], environment


def exec_daemon(home: Path, *, trace: bool, while_stdin: bool) -> None:
    """Put the daemon in the place of this process, whose memory goes back to the system."""
    arguments, environment = make_command(home, trace=trace, while_stdin=while_stdin)
    sys.stdout.flush()
    os.execve(arguments[0], arguments, environment)


def main() -> None:
    """Run the daemon of the folder that is named first."""
    signal.signal(signal.SIGTERM, terminate)

    def command() -> None:
        from manela.agents.daemon import run

        run(Path(sys.argv[1]), trace=_TRACE in sys.argv[2:], while_stdin=_WHILE_STDIN in sys.argv[2:])

    sys.exit(run_to_status(command))


if __name__ == "__main__":
    main()
