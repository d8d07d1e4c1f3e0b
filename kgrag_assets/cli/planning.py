"""``kgrag plan``: everything before judging is brought up to date, and the judge's part is estimated."""

from __future__ import annotations

from collections.abc import Callable

from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import prepare
from kgrag_assets.judging.choice import make_judge
from kgrag_assets.judging.planning import TaskPlan, plan_judging
from kgrag_assets.judging.stage import judge_pairs_of
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import SettingsError


def planned(place: Place, task: str, on_job: Callable[[str, str | None], None]) -> TaskPlan:
    """Prepare a task as far as judging, and say what that would take. The judge needs no key for it.

    Raises:
        SchemaError: the task cannot be used.
        SettingsError: retrieval itself asks a language model: preparing the task would already cost.
        RunError: a step before judging failed.
    """
    settings = task_settings(place.lake, place.settings, task)
    if "search_code" in settings.retrieval.methods:
        raise SettingsError(
            "the retrieval method search_code asks a language model itself, so nothing can be planned for free: leave "
            "it out of KGRAG_RETRIEVAL__METHODS to plan the judge's part"
        )
    prepare(place, task, on_job)
    lake = place.lake
    with CallLedger(lake.paths.ledger) as ledger:
        pairs = judge_pairs_of(
            lake.read(SCHEMA_ATTRIBUTES, task),
            lake.read(ATTRIBUTE_GROUPS, task),
            lake.read(CANDIDATE_PAIRS, task),
            lake.read(RANKED_CONTEXTS, task),
            settings.judging.values,
        )
        return plan_judging(pairs, make_judge(settings, ledger, replay=True), settings, ledger)
