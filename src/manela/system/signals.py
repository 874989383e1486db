"""Turns the failure of a command into one line on stderr and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from manela.errors import ManelaError

_INTERRUPTED = 128 + signal.SIGINT
_FRAGILE = ("numba", "llvmlite", "importlib", "_frozen_importlib")
"""Packages in which an interrupt does harm: it is ignored, or breaks what they were at, which may crash later."""
_SOON = 0.01
"""Seconds after which a postponed Ctrl-C is tried again; if longer, it may miss the moment between two kernels."""


def run_to_status(
    command: Callable[[], int | None], write: Callable[[ManelaError], str] = str, memory_hint: str = ""
) -> int:
    """Run a command and return its exit status: 2 for an error that the user can fix, 130 on Ctrl-C.

    `write` returns the text of an error.
    """
    try:
        status = int(command() or 0)
        return interrupted() if status == _INTERRUPTED else status
    except ManelaError as error:
        return fail(write(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return fail(f"{error.filename or 'the system'}: {error.strerror or error}"[:200])
    except MemoryError:
        return fail(f"not enough memory{memory_hint}")
    except KeyboardInterrupt:
        return interrupted()


def fail(message: str) -> int:
    """Print an error in one line, and return status 2."""
    first, *more_lines = message.splitlines() or [""]
    line = f"error: {first}{' …' if more_lines else ''}"
    print(line.encode(errors="replace").decode(), file=sys.stderr)
    return 2


def terminate(*_: object) -> None:
    """Handle SIGTERM: exit as on Ctrl-C, with the status of SIGTERM."""
    sys.exit(128 + signal.SIGTERM)


@contextmanager
def safe_interrupts() -> Iterator[None]:
    """Within this block, have Ctrl-C wait until Numba, LLVM and imports have finished what they are at."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # Ctrl-C is ignored, or somebody else's business
        yield
        return
    alarm_before = signal.signal(signal.SIGALRM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.setitimer(signal.ITIMER_REAL, 0.0)  # an alarm after the end would kill the process
        signal.signal(signal.SIGALRM, alarm_before)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or try again soon if that would do harm where the program is now."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _FRAGILE:
            signal.setitimer(signal.ITIMER_REAL, _SOON)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def interrupted() -> int:
    """Return the exit status after Ctrl-C, and have Python keep to it.

    An interrupt that came through an `exec` of text, of which imports have many, lets `python -m` end by the signal,
    whatever its status, unless another `exec` has ended well since.
    """
    exec("")
    return _INTERRUPTED
