"""How a process ends that fails: one line on stderr, and a status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from manela.errors import ManelaError


def run_to_status(command: Callable[[], int | None], reword: Callable[[str], str] = str, memory_hint: str = "") -> int:
    """Run a command; returns its status: 2 for what the user can fix, 130 on Ctrl-C.

    `reword` puts messages of the library into the words of the command.
    """
    try:
        return int(command() or 0)
    except ManelaError as error:
        return fail(reword(str(error)))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return fail(f"{error.filename or 'the system'}: {error.strerror or error}"[:200])
    except MemoryError:
        return fail(f"not enough memory{memory_hint}")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def fail(message: str) -> int:
    """Tell in one line what went wrong."""
    first, *rest = message.splitlines() or [""]
    line = f"error: {first}{' …' if rest else ''}"
    print(line.encode(errors="replace").decode(), file=sys.stderr)
    return 2


def terminate(*_: object) -> None:
    """End as on Ctrl-C, with another status; for SIGTERM."""
    sys.exit(128 + signal.SIGTERM)
