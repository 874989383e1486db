"""Turns the failure of a command into one line on stderr and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from manela.errors import ManelaError


def run_to_status(command: Callable[[], int | None], reword: Callable[[str], str] = str, memory_hint: str = "") -> int:
    """Run a command and return its exit status: 2 for an error that the user can fix, 130 on Ctrl-C.

    `reword` translates messages of the library into the terms of the command line.
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
    """Print an error in one line, and return status 2."""
    first, *more_lines = message.splitlines() or [""]
    line = f"error: {first}{' …' if more_lines else ''}"
    print(line.encode(errors="replace").decode(), file=sys.stderr)
    return 2


def terminate(*_: object) -> None:
    """Handle SIGTERM: exit as on Ctrl-C, with the status of SIGTERM."""
    sys.exit(128 + signal.SIGTERM)
