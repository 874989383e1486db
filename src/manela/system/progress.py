"""The progress that a run reports, and bars that show it in terminals and notebooks."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Progress:
    """The state of a run after a sweep or a round, or before its views are joined.

    Only rounds have a number of pairs, a time left, a learning rate and an objective.
    """

    # sweeps or rounds done, and the total, as far as it is known
    round: int
    rounds: int
    pairs: int = 0  # update pairs since the run started or was resumed
    seconds: float = 0.0  # running time since then
    seconds_left: float = float("inf")  # estimated time to the end at the average speed so far
    learning_rate: float = float("nan")  # α of the last round
    # equation 1 of the paper per update pair, estimated on a fixed sample; rises towards 0
    objective: float = float("nan")
    phase: str = "rounds"  # or "context" and "sweeps" before them, and "joining" or "smoothing" after them

    @property
    def pairs_per_second(self) -> float:
        """Average number of update pairs per second so far."""
        return self.pairs / self.seconds if self.seconds > 0 else 0.0


Reporter = Callable[[Progress], None]

DownloadReporter = Callable[[int, int], None]
"""Called with the bytes received so far and the total, which is 0 if unknown."""


def is_watched() -> bool:
    """Whether a bar is visible: standard error is a terminal, or this is a notebook that can show one."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    is_notebook = type(shell).__module__.startswith(("ipykernel", "google.colab"))
    return (is_notebook and _has_widgets()) or bool(getattr(sys.stderr, "isatty", lambda: False)())


def _has_widgets() -> bool:
    """Whether a notebook can show a moving bar; if it cannot, Rich would warn in each cell."""
    return importlib.util.find_spec("ipywidgets") is not None


class RunBar:
    """A progress bar of the rounds of a run, on standard error; does nothing unless `is_shown`."""

    def __init__(self, is_shown: bool, title: str = "") -> None:
        self.bar: Any = None
        self._task: Any = None
        self._facts = self._phase = ""
        self._title, self.is_shown = title, is_shown

    def __enter__(self) -> RunBar:
        if self.is_shown:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            console = Console(stderr=True, force_jupyter=None if _has_widgets() else False)
            if self._title:
                console.print(self._title, highlight=False, markup=False)
            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[facts]}"),
                console=console,
                expand=True,
            )
            self._task = self.bar.add_task("", total=1, facts="")
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    @property
    def report(self) -> Reporter | None:
        """The function to call with the progress, None if the bar is not shown."""
        return self._report if self.is_shown else None

    def _report(self, progress: Progress) -> None:
        of = f"{progress.round}/{progress.rounds}"
        titles = {
            "context": f"context round {of}", "sweeps": f"sweep {of}", "rounds": f"round {of}",
            "joining": "joining views",
        }  # fmt: skip
        if progress.phase != self._phase:
            self.bar.refresh()  # the end of a phase is seen before the next one
        self._phase = progress.phase
        if progress.phase in ("rounds", "context"):
            self._facts = (
                f"{progress.pairs_per_second / 1e6:.1f} M pairs/s  {format_seconds(progress.seconds_left)} left  "
                f"α {progress.learning_rate:.5f}  objective {progress.objective:.3f}"
            )
        self.bar.update(
            self._task,
            description=titles.get(progress.phase, progress.phase),
            completed=progress.round,
            total=progress.rounds,
            facts=self._facts,
        )


def report_download(name: object) -> DownloadReporter | None:
    """Return a function that shows the progress of a download on standard error; None if it would not be visible."""
    if not is_watched():
        return None

    def report(received: int, size: int) -> None:
        end = "\n" if received == size else ""
        total = f" of {size / 1e6:.1f}" if size else ""
        print(f"\r{name}: {received / 1e6:.1f}{total} MB", end=end, file=sys.stderr, flush=True)

    return report


def format_seconds(seconds: float) -> str:
    """Format a duration: 90 as 1:30."""
    if seconds == float("inf"):
        return "-:--"
    minutes, seconds_left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"
