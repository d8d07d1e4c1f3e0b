"""``reference_correspondences``: the true pairs of a task, where somebody wrote them down."""

from __future__ import annotations

from kgrag_assets.rows.pairs import PAIR_COLUMNS, ROW_KEY_COLUMN
from kgrag_assets.rows.table import Table

REFERENCE_CORRESPONDENCES = Table(
    name="reference_correspondences",
    description="Correspondences that the task's reference file states; used for evaluation only.",
    columns=(*PAIR_COLUMNS, ROW_KEY_COLUMN),
    key=("task", "pair_id"),
)
