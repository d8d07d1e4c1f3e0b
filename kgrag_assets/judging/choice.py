"""Which judge the settings ask for."""

from __future__ import annotations

from kgrag_assets.judging.few_shot import read_examples
from kgrag_assets.judging.offline import OfflineJudge
from kgrag_assets.judging.protocol import Judge
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import LanguageModelSettings, Settings


def make_judge(settings: Settings, ledger: CallLedger, *, replay: bool = False) -> Judge:
    """Make the judge that the settings name, with a second one where they name it.

    Args:
        settings: sections ``judging`` and ``second_judge`` are used.
        ledger: where a language model's answers are kept.
        replay: answer from the ledger alone; no key is needed, and no server.

    Raises:
        ModelUnavailableError: a key is missing, the endpoint is not a URL, or the model is not there.
        SettingsError: the examples for the prompt cannot be read.
    """
    judging = settings.judging
    if judging.judge == "offline":
        if settings.second_judge.provider != "none":
            raise ModelUnavailableError(
                "a second judge stands beside a language model: set KGRAG_JUDGING__JUDGE to openai or ollama, or "
                "KGRAG_SECOND_JUDGE__PROVIDER to none"
            )
        return OfflineJudge()
    # The clients take half a second to import and are of no use to the offline judge.
    from kgrag_assets.judging.llm_judge import LlmJudge
    from kgrag_assets.judging.prompt import PromptForm
    from kgrag_assets.judging.prompt_pair import PairwisePrompt
    from kgrag_assets.judging.prompt_source import BySourcePrompt
    from kgrag_assets.models.chat import ChatModel
    from kgrag_assets.models.chat_models import open_chat_model
    from kgrag_assets.models.replaying import LedgerOnlyChat

    def asked_with(access: LanguageModelSettings, what_for: str, prefix: str) -> ChatModel:
        if replay:
            return LedgerOnlyChat(access.provider, access.model)
        return open_chat_model(access, what_for, prefix)

    examples = read_examples(judging.few_shot)
    form: PromptForm
    form = BySourcePrompt(judging, examples) if judging.prompt == "by_source" else PairwisePrompt(judging, examples)
    second = None
    if settings.second_judge.provider != "none":
        other = settings.second_judge
        chat = asked_with(other, "the second judge", "KGRAG_SECOND_JUDGE__")
        # Asked in the same words; its own are model, endpoint and how it is called.
        own = {"judge": other.provider, **other.model_dump(exclude={"provider"})}
        second = LlmJudge(chat, ledger, judging.model_copy(update=own), other.provider, form)
    chat = asked_with(judging.language_model, f"the {judging.judge} judge", "KGRAG_JUDGING__")
    return LlmJudge(chat, ledger, judging, judging.judge, form, second)


def judge_version(settings: Settings) -> str:
    """Name what changes the meaning of a judgment: judge, model, prompt and parameters; needs no key and no server."""
    judging = settings.judging
    if judging.judge == "offline":
        judge = OfflineJudge()
        return f"offline:{judge.model}:{judge.prompt_version}"
    from kgrag_assets.judging.llm_judge import PARSER_VERSION
    from kgrag_assets.judging.prompt import template_of
    from kgrag_assets.judging.prompt_pair import TEMPLATE as PAIRWISE
    from kgrag_assets.judging.prompt_source import TEMPLATE as BY_SOURCE

    template = template_of(BY_SOURCE if judging.prompt == "by_source" else PAIRWISE, judging)
    other = settings.second_judge
    parameters = key_of(
        judging.temperature,
        judging.max_tokens,
        judging.structured == "none",
        PARSER_VERSION,
        judging.candidates_per_call,
        judging.gate,
        judging.gate_threshold,
        judging.answers,
        read_examples(judging.few_shot).version,
        [other.provider, other.model, other.temperature, other.max_tokens, other.structured == "none"],
    )[:8]
    return f"{judging.judge}:{judging.model}:{template.version}:{parameters}"
