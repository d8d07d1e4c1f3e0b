"""Count the prompt tokens of a whole task: by source attribute over the kept pairs, and one call for each of all pairs.

The prompts are the real ones, written by the judge's own code, with the facts that the demo's graph has about each
pair; nothing is asked. "Over all pairs" takes the same descriptions, the same pairwise template and no facts, which is
the least such a prompt can hold.

    python bench/prompt_tokens.py --task ../shared/data/tasks/cms_to_omop
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from kgrag_assets.cli.place import Place, dagster_home, open_instance
from kgrag_assets.cli.running import bring_up_to_date
from kgrag_assets.judging.prompt import PromptForm
from kgrag_assets.judging.prompt_pair import PairwisePrompt
from kgrag_assets.judging.prompt_source import BySourcePrompt
from kgrag_assets.judging.protocol import JudgePair
from kgrag_assets.judging.stage import judge_pairs_of
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.tokens import count_tokens
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.keys import pair_id_of
from kgrag_assets.rows.match_metrics import MATCH_METRICS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.settings import JudgingSettings, Settings

REPOSITORY = Path(__file__).parents[1]


def tokens_of(form: PromptForm, pairs: list[JudgePair]) -> tuple[int, int]:
    """Return calls and prompt tokens."""
    questions = form.questions(pairs)
    counts: dict[str, int] = {}
    total = 0
    for question in questions:
        for message in question.messages:
            if message.content not in counts:
                counts[message.content] = count_tokens(message.content)
            total += counts[message.content]
    return len(questions), total


def all_pairs(lake: Lake, task: str) -> list[JudgePair]:
    """Make every pair of the two schemas, without facts."""
    attributes = list(attributes_of(lake.read(SCHEMA_ATTRIBUTES, task)).values())
    sources = [item for item in attributes if item.side == "source"]
    targets = [item for item in attributes if item.side == "target"]
    return [
        JudgePair(task, pair_id_of(source.attribute_id, target.attribute_id), source, target, {}, (), "")
        for source, target in product(sources, targets)
    ]


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", type=Path, default=REPOSITORY / "data_lake" / "input" / "tasks" / "demo_clinic")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "bench" / "results" / "prompt_tokens.md")
    options = parser.parse_args()
    task = options.task.name
    settings = JudgingSettings()
    with tempfile.TemporaryDirectory() as scratch:
        lake = Lake.at(Path(scratch) / "lake")
        shutil.copytree(REPOSITORY / "data_lake" / "input" / "knowledge_graphs", lake.paths.knowledge_graphs)
        shutil.copytree(options.task, lake.paths.tasks / task, copy_function=shutil.copyfile)
        (lake.paths.tasks / task).chmod(0o755)
        product_settings = Settings(_env_file=None, lake=lake.paths.root)  # type: ignore[call-arg]
        with open_instance(dagster_home(lake.paths.root)) as instance:
            bring_up_to_date(Place(product_settings, lake, instance, {}), task, lambda _job, _partition: None)
        kept = judge_pairs_of(
            lake.read(SCHEMA_ATTRIBUTES, task),
            lake.read(ATTRIBUTE_GROUPS, task),
            lake.read(CANDIDATE_PAIRS, task),
            lake.read(RANKED_CONTEXTS, task),
        )
        every = all_pairs(lake, task)
        metrics = dict(lake.read(MATCH_METRICS, task).select("metric", "value").iter_rows())
    covered = metrics["pair_completeness"]
    began = time.monotonic()
    rows = [
        ("by source attribute, kept pairs", len(kept), *tokens_of(BySourcePrompt(settings), kept), covered),
        ("one call a pair, kept pairs", len(kept), *tokens_of(PairwisePrompt(settings), kept), covered),
        ("one call a pair, all pairs", len(every), *tokens_of(PairwisePrompt(settings), every), 1.0),
    ]
    least = rows[0][3]
    lines = [
        f"`{task}`, prompt tokens by the packaged WordPiece tokenizer, counted in {time.monotonic() - began:.0f} s.",
        "",
        "| what is asked | pairs | calls | prompt tokens | times the first | true pairs covered |",
        "| --- | --- | --- | --- | --- | --- |",
        *(f"| {name} | {pairs:,} | {calls:,} | {tokens:,} | {tokens / least:.1f} | {share:.2f} |"
          for name, pairs, calls, tokens, share in rows),
        "",
    ]  # fmt: skip
    text = "\n".join(lines)
    print(text)
    options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
