"""When an asset runs by itself."""

from __future__ import annotations

from typing import Any, cast

import dagster as dg


def when_content_changed(*, needs_all_upstream: bool = True) -> dg.AutomationCondition[dg.AssetKey]:
    """Run a partition when what it is made of changed in content, and only then.

    Each clause prevents an accident:

    - ``data_version_changed`` instead of "updated": an upstream rerun that produced the same rows wakes nothing.
    - ``code_version_changed``: a new prompt, model or metric recomputes although no data changed;
      ``eager()`` would not.
    - ``missing`` beside them: a new task or bucket starts without waiting for a change. It is kept outside
      ``since_last_handled`` because a partition that was missing when the daemon started is not *newly* missing.
    - ``since_last_handled``: a change that arrives while the asset is running is not forgotten.
    - not ``in_progress``, no upstream in progress: a stage neither runs twice at once nor reads half of what
      a run is about to write.
    - no upstream missing, no upstream failed: a stage does not run on an input that is still to come. A
      partition whose only run failed counts as failed, not as missing.
    - not ``execution_failed`` for the missing clause: a broken input is tried again when it changes, not on every tick.

    Args:
        needs_all_upstream: False for the published snapshot, which takes what there is: one task that
            fails must not keep the others from being published.
    """
    condition = dg.AutomationCondition
    # Dagster types dependencies as assets or checks; its operands of one asset fit both.
    new_content: dg.AutomationCondition[Any] = condition.any_deps_match(condition.data_version_changed())
    changed: dg.AutomationCondition[Any] = new_content | condition.code_version_changed()
    changed = changed.since_last_handled()
    never_tried: dg.AutomationCondition[Any] = condition.missing() & ~condition.execution_failed()
    wanted: dg.AutomationCondition[Any] = (
        (changed | never_tried) & ~condition.in_progress() & ~condition.any_deps_in_progress()
    )
    if needs_all_upstream:
        failed_upstream = condition.any_deps_match(condition.execution_failed())
        wanted = wanted & ~condition.any_deps_missing() & ~failed_upstream
    return cast("dg.AutomationCondition[dg.AssetKey]", wanted)
