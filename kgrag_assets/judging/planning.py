"""What judging a task would take, before anything is asked: calls, tokens, money and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from kgrag_assets.judging.llm_judge import LlmJudge
from kgrag_assets.judging.prompt import TOKENS_PER_ANSWER
from kgrag_assets.judging.protocol import Judge, JudgePair
from kgrag_assets.models.chat import REPLIED_STATUSES, ChatRequest
from kgrag_assets.models.chat_models import price_of
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.models.replaying import missing_answers
from kgrag_assets.models.tokens import count_tokens
from kgrag_assets.settings import LanguageModelSettings, Settings

# Assumed of a model that the ledger has no call of: seconds for a call, and for each answer in it.
SECONDS_PER_CALL, SECONDS_PER_ANSWER = 1.0, 1.0
_MINUTE_S = 60.0


@dataclass(frozen=True)
class JudgePlan:
    """What one judge would take. ``cost_usd`` is None where no price is known.

    ``calls`` are those still to be asked; ``calls_kept`` have an answer in the ledger and cost nothing. ``measured``
    says whether answers' length and latency are this model's own, from the ledger, or assumed.
    """

    model: str
    calls: int
    calls_kept: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    seconds: float
    measured: bool


@dataclass(frozen=True)
class TaskPlan:
    """What judging a task would take: its pairs, and each judge's part."""

    pairs: int
    judges: tuple[JudgePlan, ...]


def plan_judging(pairs: Sequence[JudgePair], judge: Judge, settings: Settings, ledger: CallLedger) -> TaskPlan:
    """Estimate what the judge would ask about pairs. Nothing is asked.

    Prompt tokens are counted on the prompts themselves, with the packaged tokenizer; a provider's count is near to
    that. Answer tokens and seconds are those of the model's calls in the ledger, where there are any.

    Args:
        pairs: all pairs of the task.
        judge: the judge; one without a language model takes no call.
        settings: prices, limits and concurrency.
        ledger: what was answered before.

    Raises:
        LakeError: the ledger cannot be read.
    """
    if not isinstance(judge, LlmJudge):
        return TaskPlan(len(pairs), ())
    known = ledger.frame().filter(pl.col("status").is_in(REPLIED_STATUSES))
    second = settings.second_judge
    parts = [(judge, settings.judging.language_model)] + ([(judge.second, second)] if judge.second else [])
    return TaskPlan(len(pairs), tuple(_plan(one, access, pairs, known, ledger) for one, access in parts))


def _plan(
    judge: LlmJudge,
    access: LanguageModelSettings,
    pairs: Sequence[JudgePair],
    known: pl.DataFrame,
    ledger: CallLedger,
) -> JudgePlan:
    answers: dict[str, int] = {}
    requests: list[ChatRequest] = []
    for question, asked in judge.questions(pairs):
        requests += asked
        answers |= {request.request_hash: len(question.pairs) for request in asked}
    missing = missing_answers(ledger, requests)
    tokens_in = sum(count_tokens(message.content) for request in missing for message in request.messages)
    wanted = sum(answers[request.request_hash] for request in missing)
    mine = known.filter((pl.col("model") == judge.model) & pl.col("request_hash").is_in(list(answers)))
    judged = sum(answers[request_hash] for request_hash in mine["request_hash"])
    per_answer = float(mine["tokens_out"].sum()) / judged if judged else float(TOKENS_PER_ANSWER)
    per_call = float(mine["latency_s"].sum()) / mine.height if mine.height else None
    tokens_out = round(per_answer * wanted)
    if per_call is None:
        busy = SECONDS_PER_CALL * len(missing) + SECONDS_PER_ANSWER * wanted
    else:
        busy = per_call * len(missing)
    price = price_of(access)
    return JudgePlan(
        model=judge.model,
        calls=len(missing),
        calls_kept=len(answers) - len(missing),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost_usd=None if price is None else price.of(tokens_in, tokens_out),
        seconds=_seconds(busy, len(missing), tokens_in + tokens_out, access),
        measured=bool(judged),
    )


def _seconds(busy: float, calls: int, tokens: int, access: LanguageModelSettings) -> float:
    """Seconds from the first call to the last: the slowest of the model and the rate limits."""
    bounds = [busy / access.concurrency]
    if access.requests_per_minute:
        bounds.append(_MINUTE_S * calls / access.requests_per_minute)
    if access.tokens_per_minute:
        bounds.append(_MINUTE_S * tokens / access.tokens_per_minute)
    return max(bounds)
