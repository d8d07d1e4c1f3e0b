"""Which judge the settings ask for."""

from __future__ import annotations

from kgrag_assets.judging.offline import OfflineJudge
from kgrag_assets.judging.protocol import Judge
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import JudgingSettings


def make_judge(settings: JudgingSettings, ledger: CallLedger) -> Judge:
    """Make the judge that the settings name; no server is asked yet.

    Args:
        settings: judge, model, endpoint and parameters.
        ledger: where a language model's answers are kept.

    Raises:
        ModelUnavailableError: a key is missing, or the endpoint is not a URL.
    """
    if settings.judge == "offline":
        return OfflineJudge()
    # The clients take half a second to import and are of no use to the offline judge.
    from kgrag_assets.judging.llm_judge import LlmJudge
    from kgrag_assets.models.chat import ChatModel

    model: ChatModel
    if settings.judge == "openai":
        from kgrag_assets.models import openai_server
        from kgrag_assets.models.openai_chat import OpenAIChat

        model = OpenAIChat(
            openai_server.connect(
                settings.base_url, settings.api_key_env, settings.timeout_s, f"the openai judge with {settings.model}"
            ),
            settings.model,
            structured=settings.structured,
            max_retries=settings.max_retries,
        )
    else:
        from kgrag_assets.models import ollama_server
        from kgrag_assets.models.ollama_chat import OllamaChat

        model = OllamaChat(
            ollama_server.connect(settings.base_url, settings.timeout_s),
            settings.model,
            structured=settings.structured,
            max_retries=settings.max_retries,
        )
    return LlmJudge(model, ledger, settings, settings.judge)


def judge_version(settings: JudgingSettings) -> str:
    """Name what changes the meaning of a judgment: judge, model, prompt and parameters; needs no key and no server."""
    if settings.judge == "offline":
        judge = OfflineJudge()
        return f"offline:{judge.model}:{judge.prompt_version}"
    from kgrag_assets.judging.llm_judge import PARSER_VERSION
    from kgrag_assets.judging.prompt import prompt_template

    parameters = key_of(settings.temperature, settings.max_tokens, settings.structured == "none", PARSER_VERSION)[:8]
    return f"{settings.judge}:{settings.model}:{prompt_template().version}:{parameters}"
