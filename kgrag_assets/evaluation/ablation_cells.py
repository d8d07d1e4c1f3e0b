"""The cells of the ablation report: which combinations of parts there are, and the settings that each stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, get_args

from kgrag_assets.settings import (
    AblationSettings,
    JudgingSettings,
    RankingSettings,
    RetrievalMethod,
    RetrievalSettings,
    Settings,
    SettingsError,
)

NO_RETRIEVAL = "none"
OFFLINE = "offline"
_FUSED = re.compile(r"fusion\((.*)\)")


@dataclass(frozen=True)
class Cell:
    """One combination of parts.

    ``query_form`` and ``ranking`` are empty, and ``top_n`` is 0, where nothing is retrieved; ``gate`` is False and
    ``gate_threshold`` 0 where no gate can be.
    """

    study: str
    query_form: str
    retrieval: str
    ranking: str
    top_n: int
    max_hops: int
    top_k: int
    gate: bool
    gate_threshold: int
    judge: str

    @property
    def name(self) -> str:
        """The parts, joined; unique within a study."""
        if self.retrieval == NO_RETRIEVAL:
            parts = ["no facts"]
        else:
            parts = [self.retrieval, self.query_form, self.ranking, f"best {self.top_n}"]
            if self.study != "matrix":
                parts += [f"{self.max_hops} hops", f"{self.top_k} seeds"]
        if self.judge != OFFLINE:
            parts.append(f"gate {self.gate_threshold}" if self.gate else "no gate")
        return ", ".join([self.judge, *parts])

    def settings(self, settings: Settings) -> Settings:
        """Lay the cell's parts over a task's settings.

        Raises:
            SettingsError: a value that is not allowed, such as an unknown method.
        """
        methods, fusion = methods_of(self.retrieval)
        retrieval: dict[str, Any] = {"methods": methods, "fusion": fusion, "max_hops": self.max_hops}
        retrieval |= {"entities_per_attribute": self.top_k, "triples_per_attribute": self.top_k}
        retrieval |= {"query_form": self.query_form} if self.query_form else {}
        ranking: dict[str, Any] = {"top_n": self.top_n} | ({"method": self.ranking} if self.ranking else {})
        judging: dict[str, Any] = {"judge": self.judge, "gate": self.gate}
        judging |= {"gate_threshold": self.gate_threshold} if self.gate else {}
        return settings.model_copy(
            update={
                "retrieval": _laid(settings.retrieval, retrieval, self.name),
                "ranking": _laid(settings.ranking, ranking, self.name),
                "judging": _laid(settings.judging, judging, self.name),
            }
        )


def methods_of(retrieval: str) -> tuple[tuple[str, ...], str]:
    """Read ``none``, ``a+b`` or ``fusion(a+b)`` as the methods and the kind of fusion.

    Raises:
        SettingsError: it names something that is no method.
    """
    if retrieval == NO_RETRIEVAL:
        return (), "none"
    fused = _FUSED.fullmatch(retrieval)
    methods = tuple((fused.group(1) if fused else retrieval).split("+"))
    unknown = [method for method in methods if method not in get_args(RetrievalMethod)]
    if unknown:
        known = ", ".join(get_args(RetrievalMethod))
        raise SettingsError(
            f"KGRAG_ABLATION__RETRIEVAL: {retrieval!r} names {unknown[0]!r}; use none, a+b or fusion(a+b) of {known}"
        )
    return methods, "rrf" if fused else "none"


def cells_of(settings: Settings) -> list[Cell]:
    """Name the cells of the report, in order: the matrix, then depth, top-k and, for a language model, the threshold.

    The sensitivity studies vary one value and leave the rest as the task has it.

    Raises:
        SettingsError: there are more than ``most_cells``, or one stands for settings that are not allowed.
    """
    options = settings.ablation
    cells = list(dict.fromkeys((*_matrix(settings, options), *_sensitivity(settings, options))))
    if len(cells) > options.most_cells:
        raise SettingsError(
            f"the ablation report would have {len(cells)} cells: vary fewer parts (KGRAG_ABLATION__…), or raise "
            f"KGRAG_ABLATION__MOST_CELLS above {options.most_cells}"
        )
    for cell in cells:
        cell.settings(settings)
    return cells


def _matrix(settings: Settings, options: AblationSettings) -> Iterator[Cell]:
    base = _own(settings, "matrix")
    for judge, retrieval, form, ranking, top_n, gate in product(
        options.judges, options.retrieval, options.query_forms, options.rankings, options.top_n, options.gates
    ):
        cell = replace(base, judge=judge, retrieval=retrieval, query_form=form, ranking=ranking, top_n=top_n, gate=gate)
        yield _sensible(cell, settings)


def _sensitivity(settings: Settings, options: AblationSettings) -> Iterator[Cell]:
    varied: tuple[tuple[str, str, Iterable[int]], ...] = (
        ("depth", "max_hops", options.max_hops),
        ("top_k", "top_k", options.top_k),
        ("threshold", "gate_threshold", options.thresholds),
    )
    for judge in options.judges:
        for study, part, values in varied:
            if study == "threshold" and judge == OFFLINE:
                continue
            own = replace(_own(settings, study), judge=judge)
            if study == "threshold":
                own = replace(own, gate=True)
            for value in values:
                varied_cell: Cell = replace(own, **{part: value})  # type: ignore[arg-type]  # a part that is a number
                yield _sensible(varied_cell, settings)


def _own(settings: Settings, study: str) -> Cell:
    """Return the cell that the settings themselves stand for."""
    methods = "+".join(settings.retrieval.methods) or NO_RETRIEVAL
    return Cell(
        study=study,
        query_form=settings.retrieval.query_form,
        retrieval=f"fusion({methods})" if settings.retrieval.fusion == "rrf" else methods,
        ranking=settings.ranking.method,
        top_n=settings.ranking.top_n,
        max_hops=settings.retrieval.max_hops,
        top_k=settings.retrieval.entities_per_attribute,
        gate=settings.judging.gate,
        gate_threshold=settings.judging.gate_threshold,
        judge=settings.judging.judge,
    )


def _sensible(cell: Cell, settings: Settings) -> Cell:
    """Take away what makes no difference, so that equal cells are one."""
    if cell.retrieval == NO_RETRIEVAL or cell.top_n == 0:
        # Without facts in view there is nothing to gate, either.
        cell = replace(cell, retrieval=NO_RETRIEVAL, query_form="", ranking="", top_n=0, gate=False)
    if cell.judge == OFFLINE:
        cell = replace(cell, gate=False)
    if not cell.gate:
        cell = replace(cell, gate_threshold=0)
    elif cell.gate_threshold == 0:
        cell = replace(cell, gate_threshold=settings.judging.gate_threshold)
    return cell


def _laid(
    section: RetrievalSettings | RankingSettings | JudgingSettings, values: dict[str, Any], cell: str
) -> RetrievalSettings | RankingSettings | JudgingSettings:
    try:
        return type(section).model_validate({**section.model_dump(), **values})
    except ValueError as error:
        raise SettingsError(f"the ablation cell {cell!r} is not allowed: {error}") from error
