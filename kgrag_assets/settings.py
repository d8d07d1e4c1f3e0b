"""Every setting of the product, typed, in one place; read from the environment (``KGRAG_…``) and ``.env``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict


class SettingsError(ValueError):
    """A setting is not usable; the message names it, its value and what is allowed."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EmbedderSettings(_Section):
    """Which model turns text into vectors."""

    kind: Literal["sentence-transformers", "static", "openai", "ollama"] = "sentence-transformers"
    model: str = Field("packaged:all-MiniLM-L6-v2", description="Model name, a path, or packaged:all-MiniLM-L6-v2.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="Numbers that a sentence-transformers model computes with."
    )
    static_cache: Path | None = Field(
        None, description="Folder of distilled static models; empty for the user's cache folder."
    )
    first_stage: Literal["none", "static"] = Field(
        "none", description="static: the graph gets cheap vectors, and the model re-scores what they find."
    )
    first_stage_texts: int = Field(100_000, ge=100, description="Texts that the cheap vectors are fitted to.")
    rescored: int = Field(1000, ge=10, le=10_000, description="Candidates of the first stage that the model re-scores.")
    rescoring_cache: int = Field(200_000, ge=0, description="Texts whose vectors re-scoring remembers.")
    base_url: str | None = Field(None, description="Endpoint of an OpenAI-compatible or Ollama server.")
    api_key_env: str = Field("OPENAI_API_KEY", description="Environment variable that holds the key.")
    batch_size: int = Field(64, ge=1, le=4096)
    checkpoint_texts: int = Field(2048, ge=1, description="Texts after which finished vectors are kept on disk.")
    timeout_s: float = Field(60.0, gt=0)


class GraphSettings(_Section):
    """How knowledge graphs are split and which of them a task uses."""

    buckets: int = Field(8, ge=1, le=99, description="Partitions of the graph by hash of the entity id.")
    workers: int = Field(2, ge=1, le=256, description="Processes that read a large graph's files.")
    memory_mb: int = Field(2000, ge=200, description="What the joining of a graph's rows may hold in memory, in MB.")
    embed_triples: Literal["all", "reachable"] = Field(
        "all", description="reachable: only triples about entities that the attributes of some task lead to."
    )
    graphs: tuple[str, ...] | None = Field(None, description="Graphs that a task uses; empty for all in the lake.")


class IndexSettings(_Section):
    """Parameters of the vector indexes over the graph."""

    kind: Literal["faiss", "qdrant"] = Field("faiss", description="In the lake, or served by Qdrant.")
    url: str | None = Field(None, description="Address of the Qdrant server.")
    api_key_env: str = Field("QDRANT_API_KEY", description="Environment variable that holds the server's key.")

    hnsw_m: int = Field(32, ge=4, le=128)
    ef_construction: int = Field(200, ge=8)
    ef_search: int = Field(64, ge=8)
    rebuild_share: float = Field(0.2, gt=0, le=1, description="Share of delta and dead rows that starts a rebuild.")
    storage: Literal["full", "fp16", "sq8"] = Field(
        "fp16", description="How vectors are kept: 32-bit floats, 16-bit floats (half), or one byte a number (quarter)."
    )
    exact_below: int = Field(
        2000, ge=0, description="With fewer rows there is no graph, and every search compares all of them."
    )


class _ModelAccess(_Section):
    """How a language model is asked, and how much of it may be used."""

    model: str = Field("gpt-4o-mini", description="The model's name on its server.")
    base_url: str | None = Field(None, description="Endpoint; empty for the client's default.")
    api_key_env: str = Field("OPENAI_API_KEY", description="Environment variable that holds the key.")
    structured: Literal["auto", "json_schema", "none"] = Field("auto", description="Whether to ask for JSON by schema.")
    temperature: float = Field(0.0, ge=0, le=2)
    max_tokens: int = Field(
        300, ge=16, description="Longest answer about one pair, in tokens; a further pair in a call adds 120."
    )
    timeout_s: float = Field(60.0, gt=0)
    max_retries: int = Field(3, ge=0, le=20)
    concurrency: int = Field(4, ge=1, le=64)
    requests_per_minute: int | None = Field(
        None, ge=1, description="At most so many calls a minute; empty for no limit."
    )
    tokens_per_minute: int | None = Field(
        None, ge=1, description="At most so many tokens a minute; empty for no limit."
    )
    max_cost_usd: float | None = Field(None, ge=0, description="What one run may cost; it stops before it passes this.")
    max_total_tokens: int | None = Field(
        None, ge=1, description="Tokens that one run may use; it stops before it passes."
    )


class LanguageModelSettings(_ModelAccess):
    """Which language model is asked, how, and how much of it may be used."""

    provider: Literal["none", "openai", "ollama"] = "none"


class BlockingSettings(_Section):
    """Which pairs are worth judging."""

    group: bool = Field(True, description="Attributes of one side that mean the same are blocked and judged once.")
    k_vector: int = Field(40, ge=0, description="Best partners per group by vector, from both sides.")
    k_lexical: int = Field(40, ge=0, description="Best partners per group by BM25, from both sides.")
    budget_share: float = Field(0.10, gt=0, le=1, description="At most this share of all pairs is judged.")
    budget_floor: int = Field(200, ge=1, description="Small tasks may judge this many pairs whatever the share.")


RetrievalMethod = Literal["vector_triples", "entity_paths", "search_code"]


class RetrievalSettings(_Section):
    """How facts about a pair are searched in the graph."""

    methods: tuple[RetrievalMethod, ...] = ("vector_triples", "entity_paths")
    fusion: Literal["none", "rrf"] = Field(
        "none", description="rrf: facts of all methods in one list by reciprocal rank; none: by their scores."
    )
    query_form: Literal["concept", "question"] = Field(
        "concept", description="What is searched for: each attribute's concept, or the whole question about the pair."
    )
    triples_per_attribute: int = Field(5, ge=1, le=200)
    entities_per_attribute: int = Field(3, ge=1, le=50)
    min_cosine: float = Field(0.45, ge=-1, le=1, description="Seeds and triples below this cosine are not used.")
    max_hops: int = Field(3, ge=1, le=3)
    adaptive: bool = Field(
        False, description="Search further, up to twice as many seeds and max_hops, only for pairs that need it."
    )
    hub_cap: int = Field(200, ge=1, description="Neighbours of one node that a path search follows.")
    max_facts: int = Field(20, ge=1, description="Facts kept per pair and method.")
    code_steps: int = Field(200, ge=10, le=10_000, description="Steps that a search program may take.")
    code_calls: int = Field(12, ge=1, le=200, description="Questions to the graph that a search program may ask.")


class RankingSettings(_Section):
    """How many facts the judge sees, and which."""

    method: Literal["frequency", "cosine", "cross_encoder", "none"] = "frequency"
    top_n: int = Field(2, ge=0, le=50)
    min_score: float = Field(0.45, ge=0, le=1, description="Facts below this score are counted, not shown.")
    cross_encoder: str = Field("cross-encoder/ms-marco-MiniLM-L6-v2", description="Model of the cross_encoder method.")
    near_duplicate: float = Field(0.85, gt=0, le=1, description="Facts that share so much of their words count once.")


class JudgingSettings(_ModelAccess):
    """Who judges the pairs, and how they are asked."""

    judge: Literal["offline", "openai", "ollama"] = "offline"
    prompt: Literal["by_source", "pairwise"] = Field(
        "by_source", description="One call per source attribute with all its candidates, or one call per pair."
    )
    candidates_per_call: int = Field(20, ge=1, le=100, description="Candidates that one call asks about at most.")
    few_shot: Path | None = Field(None, description="A file of examples for the prompt; empty for none.")
    description_tokens: int = Field(120, ge=16, description="Longer descriptions are cut, visibly.")
    gate: bool = Field(True, description="Facts that the model finds irrelevant do not decide.")
    gate_threshold: int = Field(7, ge=0, le=10, description="Relevance, 0..10, from which the facts decide.")
    values: Literal["shapes", "masked", "local"] = Field(
        "shapes",
        description="What a prompt shows of sample values: their shapes, a masked sample, or nothing (all stays here).",
    )
    answers: int = Field(
        1, ge=1, le=15, description="Self-consistency: answers per question, of which the vote counts."
    )

    @property
    def language_model(self) -> LanguageModelSettings:
        """Return how the judge's model is asked; ``provider`` is none for the offline judge."""
        shared = {name: getattr(self, name) for name in _ModelAccess.model_fields}
        return LanguageModelSettings(provider="none" if self.judge == "offline" else self.judge, **shared)


class MappingSettings(_Section):
    """How judgments become one mapping."""

    cardinality: Literal["1:1", "n:1", "n:m"] = "n:1"
    min_score: float = Field(0.5, ge=0, le=1, description="Pairs below this score are not proposed.")
    coherence: float = Field(
        1.0, ge=0, le=4, description="What the fit of two tables as a whole counts; 0 for nothing."
    )


class EvaluationSettings(_Section):
    """How a mapping is measured."""

    bootstrap_samples: int = Field(1000, ge=100)
    seed: int = 20240513


class AblationSettings(_Section):
    """Which parts of the method the ablation report varies, and over which values.

    Its matrix has a cell for each combination, where the parts make a difference: without facts there is nothing to
    rank, and the offline judge has no gate. ``retrieval`` names methods joined by ``+``, ``none`` for no facts, and
    ``fusion(a+b)`` for methods fused by reciprocal rank.
    """

    query_forms: tuple[Literal["concept", "question"], ...] = ("concept", "question")
    retrieval: tuple[str, ...] = ("none", "vector_triples", "entity_paths", "fusion(vector_triples+entity_paths)")
    rankings: tuple[Literal["frequency", "cosine", "cross_encoder", "none"], ...] = ("frequency", "cosine", "none")
    top_n: tuple[int, ...] = (1, 2)
    gates: tuple[bool, ...] = (True, False)
    judges: tuple[Literal["offline", "openai", "ollama"], ...] = ("offline",)
    max_hops: tuple[int, ...] = Field((1, 2, 3), description="Sensitivity: depth of the path search.")
    top_k: tuple[int, ...] = Field((1, 3, 5), description="Sensitivity: seeds and triples for each attribute.")
    thresholds: tuple[int, ...] = Field((3, 5, 7, 9), description="Sensitivity: relevance from which facts decide.")
    most_cells: int = Field(500, ge=1, description="A larger matrix is refused before anything is paid for.")


# What prompts may tell of sample values, from nothing on.
_TELLING = ("local", "shapes", "masked")
_NOT_BY_A_TASK = {
    "judging": frozenset(
        {
            "api_key_env",
            "base_url",
            "few_shot",
            "max_cost_usd",
            "max_total_tokens",
            "requests_per_minute",
            "tokens_per_minute",
        }
    ),
    "ranking": frozenset({"cross_encoder"}),
}


class Settings(BaseSettings):
    """All settings. ``KGRAG_EMBEDDER__MODEL=…`` sets ``embedder.model``."""

    model_config = SettingsConfigDict(
        env_prefix="KGRAG_", env_nested_delimiter="__", env_file=".env", extra="ignore", frozen=True
    )

    lake: Path = Path("data_lake")
    embedder: EmbedderSettings = EmbedderSettings()
    graph: GraphSettings = GraphSettings()
    index: IndexSettings = IndexSettings()
    blocking: BlockingSettings = BlockingSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    retrieval_llm: LanguageModelSettings = LanguageModelSettings()
    ranking: RankingSettings = RankingSettings()
    judging: JudgingSettings = JudgingSettings()
    second_judge: LanguageModelSettings = LanguageModelSettings()
    mapping: MappingSettings = MappingSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    ablation: AblationSettings = AblationSettings()

    def for_task(self, options: dict[str, Any], origin: str) -> Settings:
        """Return these settings with a task's own options laid over them.

        Args:
            options: sections and values, as ``task.yaml`` has them below ``options``. A task may set
                what is decided per task: blocking, retrieval, ranking, judging, mapping, graph.graphs.
            origin: the file they come from, for the error message.

        Raises:
            SettingsError: an unknown section or setting, or a value that is not allowed.
        """
        allowed = ("blocking", "retrieval", "ranking", "judging", "mapping", "graph")
        changed: dict[str, Any] = {}
        for section, values in options.items():
            if section not in allowed:
                raise SettingsError(
                    f"{origin}: options.{section} cannot be set by a task; use one of {', '.join(allowed)}"
                )
            if not isinstance(values, dict):
                raise SettingsError(f"{origin}: options.{section} must be a mapping of settings to values")
            if section == "graph" and set(values) - {"graphs"}:
                raise SettingsError(f"{origin}: of options.graph a task may set graphs only")
            # A task folder is somebody's upload: it must not send our key to an address it names, read our files,
            # fetch a model or spend more than we allow.
            refused = sorted(set(values) & _NOT_BY_A_TASK.get(section, frozenset()))
            if refused:
                raise SettingsError(f"{origin}: {section}.{refused[0]} is set in the environment, not by a task")
            if section == "judging" and values.get("values") in _TELLING[_TELLING.index(self.judging.values) + 1 :]:
                raise SettingsError(
                    f"{origin}: judging.values may keep more on this machine than the environment's "
                    f"{self.judging.values!r} does, not less"
                )
            current: BaseModel = getattr(self, section)
            try:
                changed[section] = type(current).model_validate({**current.model_dump(), **values})
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"])
                raise SettingsError(f"{origin}: options.{section}.{where}: {first['msg']}") from error
        return self.model_copy(update=changed)
