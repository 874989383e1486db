"""What `manela agent run` becomes: a process that holds the daemon and nothing of the command line."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from manela.cli.failure import run_to_status, terminate

_TRACE, _WHILE_STDIN = "--trace", "--while-stdin"


def exec_daemon(home: Path, trace: bool, while_stdin: bool) -> None:
    """Put the daemon in the place of this process, whose memory goes back to the system."""
    flags = [flag for flag, given in ((_TRACE, trace), (_WHILE_STDIN, while_stdin)) if given]
    sys.stdout.flush()
    # threads of a library of linear algebra would wait for each other, and for those of other daemons
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **os.environ}
    os.execve(sys.executable, [sys.executable, "-m", "manela.cli.daemon", str(home), *flags], environment)


def main() -> None:
    """Run the daemon of the folder that is named first."""
    signal.signal(signal.SIGTERM, terminate)

    def command() -> None:
        from manela.agents.daemon import run

        run(Path(sys.argv[1]), trace=_TRACE in sys.argv[2:], while_stdin=_WHILE_STDIN in sys.argv[2:])

    sys.exit(run_to_status(command))


if __name__ == "__main__":
    main()
