"""The figures of the reports can be drawn, whatever the names and numbers."""

from __future__ import annotations

import io

from PIL import Image

from kgrag_assets.evaluation.plots import Bar, bar_chart, line_chart


def size_of(png: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(png)) as image:
        assert image.format == "PNG"
        return image.size


def test_equal_figures_have_equal_bytes_and_odd_names_are_no_formula() -> None:
    points = {"kgrag": [(0.01, 0.2), (0.1, 0.9)], "$\\frac{1$_": [(0.01, 0.1), (0.1, 0.5)]}
    first = line_chart("a_b $x^{", points, "budget", "kept", log_x=True)
    assert first == line_chart("a_b $x^{", points, "budget", "kept", log_x=True)
    assert min(size_of(first)) > 200


def test_more_bars_make_a_taller_figure_and_none_can_be_drawn() -> None:
    bars = [Bar(f"cell {n}", n / 30, n / 40, None if n % 2 else n / 20) for n in range(30)]
    assert size_of(bar_chart("cells", bars, "hit@1"))[1] > size_of(bar_chart("cells", bars[:5], "hit@1"))[1]
    assert size_of(bar_chart("none", [], "hit@1"))
    assert size_of(line_chart("none", {}, "x", "y"))
