"""A language model as judge, through the whole pipeline, against a server on loopback that speaks its protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import RunError, RunReport, bring_up_to_date
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.match_metrics import MATCH_METRICS
from kgrag_assets.settings import JudgingSettings
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder
from kgrag_assets_tests.servers.openai_server import SERVER_ERROR, OpenAIServer

PAIRS = len(workshop.SOURCE) * len(workshop.TARGET)


def birth_only(request: dict[str, Any]) -> str:
    """Say yes where both columns of the prompt are the dates of birth."""
    prompt = " ".join(message["content"] for message in request["messages"])
    match = "dob" in prompt and "birth_date" in prompt
    return json.dumps({"reason": "both say so" if match else "they differ", "match": match, "confidence": 0.9,
                       "facts": []})  # fmt: skip


class Asking:
    def __init__(self, root: Path, instance: dg.DagsterInstance, server: OpenAIServer) -> None:
        self.root, self.instance, self.server = root, instance, server
        self.lake = Lake.at(root / "lake")
        self.embedder = WordEmbedder()
        self.asked = 0
        server.text_for = self._answer
        workshop.put_task(self.lake)
        workshop.put_graph(self.lake)

    def _answer(self, request: dict[str, Any]) -> str:
        self.asked += 1
        return birth_only(request)

    def run(self, model: str = "gpt-4o-mini") -> RunReport:
        self.asked = 0
        self.embedder.seen.clear()
        judging = JudgingSettings(
            judge="openai",
            model=model,
            base_url=self.server.url,
            max_retries=0,
            concurrency=2,
            timeout_s=20,
            prompt="pairwise",
        )
        settings = workshop.settings_for(self.root, judging=judging)
        place = Place(settings, self.lake, self.instance, {"embedder": self.embedder})
        return bring_up_to_date(place, TASK, lambda _job, _partition: None)


@pytest.fixture
def asking(tmp_path: Path, openai_server: OpenAIServer) -> Iterator[Asking]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Asking(tmp_path, instance, openai_server)


def test_a_model_judges_each_pair_once_and_its_calls_are_published(asking: Asking) -> None:
    asking.run()
    assert asking.asked == PAIRS
    proposed = asking.lake.read(ATTRIBUTE_MAPPINGS, TASK).filter(decision="proposed")
    assert proposed.select("source_column", "target_column").rows() == [("dob", "birth_date")]
    with duckdb.connect(str(asking.lake.paths.snapshot), read_only=True) as connection:
        calls = connection.execute("SELECT count(*), sum(tokens_in) FROM llm_calls WHERE task = ?", [TASK]).fetchone()
    assert calls == (PAIRS, 100 * PAIRS)
    asking.run()
    assert asking.asked == 0


def test_another_model_judges_again_and_embeds_nothing(asking: Asking) -> None:
    asking.run()
    asking.server.models.add("gpt-other")
    report = asking.run("gpt-other")
    assert asking.asked == PAIRS
    assert asking.embedder.seen == []
    assert "candidate_pairs" not in {step.asset for step in report.steps}
    # And back: every answer is in the ledger.
    asking.run()
    assert asking.asked == 0


def test_answers_that_cannot_be_read_are_counted_and_kept(asking: Asking) -> None:
    asking.server.text_for = lambda _request: "Hard to say."
    asking.run()
    judgments = asking.lake.read(LLM_JUDGMENTS, TASK)
    assert judgments.height == PAIRS
    assert set(judgments["parse_status"]) == {"unparsed"}
    metrics = dict(asking.lake.read(MATCH_METRICS, TASK).select("metric", "value").iter_rows())
    assert metrics["unanswered_pairs"] == PAIRS
    assert set(asking.lake.read(ATTRIBUTE_MAPPINGS, TASK)["decision"]) == {"alternative", "no_match"}


def test_calls_that_failed_are_asked_again_by_the_next_run(asking: Asking) -> None:
    asking.server.then(*[SERVER_ERROR] * 3)
    asking.run()
    assert asking.lake.read(LLM_JUDGMENTS, TASK).filter(parse_status="error").height == 3
    report = asking.run()
    assert asking.asked == 3
    assert set(asking.lake.read(LLM_JUDGMENTS, TASK)["parse_status"]) == {"parsed"}
    assert [step.computed for step in report.steps if step.asset == "llm_judgments"] == [3]


def test_a_wrong_model_stops_the_run_with_a_word_and_loses_nothing(asking: Asking) -> None:
    with pytest.raises(RunError, match="gpt-unknown"):
        asking.run("gpt-unknown")
    asking.run()
    assert asking.asked == PAIRS
    with CallLedger(asking.lake.paths.ledger) as ledger:
        assert ledger.frame().filter(status="answered").height == PAIRS
