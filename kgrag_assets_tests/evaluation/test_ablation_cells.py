"""Which cells the ablation report has, and what each stands for."""

from __future__ import annotations

import pytest

from kgrag_assets.evaluation.ablation_cells import cells_of, methods_of
from kgrag_assets.settings import AblationSettings, JudgingSettings, RetrievalSettings, Settings, SettingsError


def settings_with(**ablation: object) -> Settings:
    return Settings(_env_file=None, ablation=AblationSettings.model_validate(ablation))  # type: ignore[call-arg]


def test_combinations_that_make_no_difference_are_one_cell() -> None:
    cells = [cell for cell in cells_of(settings_with(retrieval=("none", "vector_triples"))) if cell.study == "matrix"]
    # One without facts; of the method, 2 query forms x 3 rankings x 2 top-n: the offline judge has no gate.
    assert len(cells) == 1 + 12
    assert len({cell.name for cell in cells}) == 13
    assert cells[0].name == "offline, no facts"


def test_a_language_model_has_gates_and_thresholds() -> None:
    options = settings_with(judges=("openai",), retrieval=("none", "entity_paths"), query_forms=("concept",))
    cells = cells_of(options)
    matrix = [cell for cell in cells if cell.study == "matrix"]
    assert len(matrix) == 1 + 3 * 2 * 2
    thresholds = [cell.gate_threshold for cell in cells if cell.study == "threshold"]
    assert thresholds == [3, 5, 7, 9]
    laid = next(cell for cell in cells if cell.study == "threshold").settings(options)
    assert (laid.judging.judge, laid.judging.gate, laid.judging.gate_threshold) == ("openai", True, 3)


def test_a_cell_lays_its_parts_over_the_tasks_settings() -> None:
    options = settings_with(retrieval=("fusion(vector_triples+entity_paths)",), query_forms=("question",), top_n=(4,))
    cell = cells_of(options)[0]
    laid = cell.settings(options)
    assert laid.retrieval.methods == ("vector_triples", "entity_paths")
    assert (laid.retrieval.fusion, laid.retrieval.query_form, laid.ranking.top_n) == ("rrf", "question", 4)
    assert laid.blocking == options.blocking
    depths = [c.settings(options).retrieval.max_hops for c in cells_of(options) if c.study == "depth"]
    assert depths == [1, 2, 3]
    seeds = [c.settings(options).retrieval.triples_per_attribute for c in cells_of(options) if c.study == "top_k"]
    assert seeds == [1, 3, 5]


def test_the_rest_of_a_sensitivity_study_is_the_tasks_own() -> None:
    own = Settings(
        _env_file=None,  # type: ignore[call-arg]
        retrieval=RetrievalSettings(methods=("entity_paths",), fusion="rrf"),
        judging=JudgingSettings(gate_threshold=4),
    )
    depth = next(cell for cell in cells_of(own) if cell.study == "depth")
    assert depth.retrieval == "fusion(entity_paths)"
    assert "1 hops" in depth.name


@pytest.mark.parametrize("wrong", ["vector", "fusion(a+b)", "entity_paths+", ""])
def test_what_is_no_method_is_refused_before_anything_runs(wrong: str) -> None:
    with pytest.raises(SettingsError, match="KGRAG_ABLATION__RETRIEVAL"):
        methods_of(wrong)
    with pytest.raises(SettingsError, match="use none"):
        cells_of(settings_with(retrieval=(wrong,)))


def test_a_matrix_that_is_too_large_is_refused() -> None:
    with pytest.raises(SettingsError, match="MOST_CELLS above 5"):
        cells_of(settings_with(most_cells=5))


def test_a_value_that_is_not_allowed_names_its_cell() -> None:
    with pytest.raises(SettingsError, match="9 hops"):
        cells_of(settings_with(max_hops=(9,)))
