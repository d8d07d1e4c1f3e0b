"""Progress on the terminal, and a quiet stand-in where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class RichProgress:
    """Bars for the work of a run's steps. Use as a context manager around the run."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``; nothing is drawn where it is not a terminal."""
        self._console = console
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bars.stop()

    def job(self, job: str, partition: str | None) -> None:
        """Say which run begins."""
        for bar in self._bars.task_ids:
            self._bars.remove_task(bar)
        name = job.replace("_", " ") + (f" {partition}" if partition else "")
        if self._console.is_terminal:
            self._bars.add_task(name, total=None)
        else:
            self._console.print(f"· {name}", markup=False, highlight=False)

    def track(self, what: str, total: int) -> Callable[[int], None]:
        """Begin a bar of ``total`` steps."""
        if not total:
            return lambda _steps: None
        bar = self._bars.add_task(what, total=total)
        return lambda steps: self._bars.update(bar, advance=steps)
