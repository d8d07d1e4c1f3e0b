"""Figures of the reports, as PNG: how many true pairs a budget keeps, and what each combination of parts brings."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 110
# Colours that people with colour-blindness can tell apart (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class Bar:
    """A named value with its interval; the ends are None where there is none."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def line_chart(
    title: str, lines: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str, *, log_x: bool = False
) -> bytes:
    """Draw lines through points.

    Args:
        title: above the figure.
        lines: by name, points of x and y in order; y is a share, 0..1.
        x_label: of the horizontal axis.
        y_label: of the vertical axis.
        log_x: whether x is drawn by its logarithm.

    Returns:
        PNG.
    """
    figure = _figure(6.4, 3.8)
    axes = figure.add_subplot()
    for colour, (name, points) in zip(_cycled(len(lines)), lines.items(), strict=True):
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, color=colour, label=_plain(name))
    if log_x:
        axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    axes.set_title(_plain(title), fontsize=10)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if lines:
        axes.legend(fontsize=8)
    return _png(figure)


def bar_chart(title: str, bars: Sequence[Bar], x_label: str) -> bytes:
    """Draw a horizontal bar for each value, the first one on top, with its interval as a line.

    Returns:
        PNG.
    """
    figure = _figure(7.6, 1.2 + 0.24 * max(len(bars), 1))
    axes = figure.add_subplot()
    places = range(len(bars))
    errors = [
        [bar.value - (bar.value if bar.low is None else min(bar.low, bar.value)) for bar in bars],
        [(bar.value if bar.high is None else max(bar.high, bar.value)) - bar.value for bar in bars],
    ]
    axes.barh(places, [bar.value for bar in bars], xerr=errors, color=_COLOURS[0], ecolor="#555555", height=0.7)
    axes.set_yticks(places, [_plain(bar.name) for bar in bars], fontsize=7)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(_plain(title), fontsize=10)
    axes.set_xlabel(x_label)
    return _png(figure)


def _cycled(count: int) -> list[str]:
    return [_COLOURS[place % len(_COLOURS)] for place in range(count)]


def _plain(text: str) -> str:
    # A dollar sign would begin a formula: names come from outside.
    return text.replace("$", r"\$")


def _figure(width: float, height: float) -> Figure:
    # The figure's own canvas: no window system is looked for, and nothing is shared between threads.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=_DPI, layout="constrained")


def _png(figure: Figure) -> bytes:
    target = io.BytesIO()
    # Without the library's version in it, the same figure has the same bytes.
    figure.savefig(target, format="png", metadata={"Software": None})
    return target.getvalue()
