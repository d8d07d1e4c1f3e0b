"""The list of all tables: what is published, and in which order."""

from __future__ import annotations

from kgrag_assets.rows.ablation_report import ABLATION_REPORT
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.blocking_curve import BLOCKING_CURVE
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.llm_calls import LLM_CALLS
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.match_metrics import MATCH_METRICS, MATCH_MISSES
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.reference_entity_links import REFERENCE_ENTITY_LINKS
from kgrag_assets.rows.rejects import SCHEMA_REJECTS
from kgrag_assets.rows.retrieval_diagnostics import RETRIEVAL_DIAGNOSTICS
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import Table

# Tables with one partition per task, as the published snapshot carries them.
TASK_TABLES: tuple[Table, ...] = (
    SCHEMA_ATTRIBUTES,
    SCHEMA_REJECTS,
    REFERENCE_CORRESPONDENCES,
    REFERENCE_ENTITY_LINKS,
    ATTRIBUTE_GROUPS,
    CANDIDATE_PAIRS,
    RETRIEVED_SUBGRAPHS,
    RANKED_CONTEXTS,
    LLM_JUDGMENTS,
    ATTRIBUTE_MAPPINGS,
    MATCH_METRICS,
    MATCH_MISSES,
    BLOCKING_CURVE,
    RETRIEVAL_DIAGNOSTICS,
)

# Likewise, but filled only when somebody asks for it.
ON_DEMAND_TABLES: tuple[Table, ...] = (ABLATION_REPORT,)

PUBLISHED_TABLES: tuple[Table, ...] = (*TASK_TABLES, *ON_DEMAND_TABLES, LLM_CALLS)
