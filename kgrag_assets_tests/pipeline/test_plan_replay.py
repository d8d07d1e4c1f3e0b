"""A plan before anything is asked, and a replay after everything was: over the whole pipeline, against a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from kgrag_assets.cli.place import Place
from kgrag_assets.cli.planning import planned
from kgrag_assets.cli.running import bring_up_to_date
from kgrag_assets.evaluation.replay import compared, replay_task
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.match_metrics import MATCH_METRICS
from kgrag_assets.settings import JudgingSettings, LanguageModelSettings, RetrievalSettings, Settings, SettingsError
from kgrag_assets_tests.judging.test_prompt import FENCE
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder
from kgrag_assets_tests.servers.openai_server import OpenAIServer

SOURCES, PAIRS = len(workshop.SOURCE), len(workshop.SOURCE) * len(workshop.TARGET)


def by_name(body: dict[str, Any]) -> str:
    """Say yes to candidates that share the beginning of the source column's name."""
    blocks = {name: text for _, name, text in FENCE.findall(body["messages"][1]["content"])}
    own = re.search(r"^column: (\S+)", blocks["source column"], re.MULTILINE)
    assert own is not None
    candidates = re.findall(r"^C(\d+)\n(?:table: .*\n)column: (\S+)", blocks["candidates"], re.MULTILINE)
    answers = [
        {
            "candidate": f"C{place}",
            "own_match": False,
            "own_confidence": 0.5,
            "relevance": 3,
            "reason": "r",
            "match": name[:1] == own[1][:1],
            "confidence": 0.9,
            "facts": [],
        }
        for place, name in candidates
    ]
    return json.dumps({"answers": answers})


class Asking:
    def __init__(self, root: Path, instance: dg.DagsterInstance, server: OpenAIServer) -> None:
        self.root, self.instance, self.server = root, instance, server
        self.lake = Lake.at(root / "lake")
        server.text_for = by_name
        workshop.put_task(self.lake)
        workshop.put_graph(self.lake)

    def settings(self, **options: Any) -> Settings:
        judging = {"judge": "openai", "base_url": self.server.url, "max_retries": 0, **options}
        return workshop.settings_for(self.root, judging=JudgingSettings.model_validate(judging))

    def place(self, settings: Settings | None = None) -> Place:
        return Place(settings or self.settings(), self.lake, self.instance, {"embedder": WordEmbedder()})

    def run(self, settings: Settings | None = None) -> None:
        bring_up_to_date(self.place(settings), TASK, lambda _job, _partition: None)


@pytest.fixture
def asking(tmp_path: Path, openai_server: OpenAIServer) -> Iterator[Asking]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Asking(tmp_path, instance, openai_server)


def test_a_plan_asks_nothing_and_the_run_takes_what_it_said(asking: Asking) -> None:
    plan = planned(asking.place(), TASK, lambda _job, _partition: None)
    assert asking.server.asked == []
    (part,) = plan.judges
    assert (plan.pairs, part.calls, part.calls_kept, part.measured) == (PAIRS, SOURCES, 0, False)
    assert part.tokens_in > 0
    assert part.cost_usd == 0.0
    assert asking.lake.read(LLM_JUDGMENTS, TASK).is_empty()
    asking.run()
    assert len(asking.server.asked) == part.calls
    (after,) = planned(asking.place(), TASK, lambda _job, _partition: None).judges
    assert (after.calls, after.calls_kept, after.tokens_in, after.measured) == (0, SOURCES, 0, True)


def test_a_second_judge_and_several_answers_are_planned_too(asking: Asking) -> None:
    several = asking.settings(answers=3, requests_per_minute=1)
    second = LanguageModelSettings(provider="openai", model="gpt-4o", base_url=asking.server.url)
    settings = several.model_copy(update={"second_judge": second})
    first, other = planned(asking.place(settings), TASK, lambda _job, _partition: None).judges
    assert (first.calls, other.calls) == (3 * SOURCES, 3 * SOURCES)
    assert first.seconds >= 60.0 * first.calls
    assert other.model == "gpt-4o"


def test_what_would_cost_before_judging_is_not_planned(asking: Asking) -> None:
    settings = workshop.settings_for(asking.root, retrieval=RetrievalSettings(methods=("search_code",)))
    with pytest.raises(SettingsError, match="KGRAG_RETRIEVAL__METHODS"):
        planned(asking.place(settings), TASK, lambda _job, _partition: None)


def test_a_replay_has_the_same_answers_and_metrics_without_a_model(asking: Asking) -> None:
    asking.run()
    asked = len(asking.server.asked)
    elsewhere = asking.settings(base_url="http://127.0.0.1:1")
    stages = replay_task(asking.lake, elsewhere, TASK)
    assert [stage.stage for stage in stages] == ["llm_judgments", "attribute_mappings", "match_metrics"]
    assert [stage.different for stage in stages] == [0, 0, 0]
    assert [stage.equal for stage in stages] == [stage.stored for stage in stages]
    assert stages[0].stored == PAIRS
    assert stages[2].stored > 10
    assert len(asking.server.asked) == asked


def test_a_replay_of_what_was_never_asked_says_so(asking: Asking) -> None:
    asking.run()
    with pytest.raises(ModelUnavailableError, match="never asked"):
        replay_task(asking.lake, asking.settings(model="another"), TASK)
    with CallLedger(asking.lake.paths.ledger) as ledger:
        assert ledger.frame().height == SOURCES


def test_a_row_that_differs_is_named(asking: Asking) -> None:
    asking.run()
    stored = asking.lake.read(MATCH_METRICS, TASK)
    other = stored.with_columns(value=stored["value"] * 0.5)
    found = compared(MATCH_METRICS, stored, other)
    assert (found.stored, found.equal + found.different) == (stored.height, stored.height)
    assert found.different > 0
    assert found.first_difference.startswith(TASK)
    fewer = compared(MATCH_METRICS, stored, stored[:-1])
    assert (fewer.different, fewer.equal) == (1, stored.height - 1)
