"""An OpenAI-compatible server as chat models and embedders share it: address, key, client, and what failures mean."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import openai

from kgrag_assets.models.endpoints import checked_url, host_of, is_loopback, key_from_environment, without_secrets
from kgrag_assets.models.errors import ModelUnavailableError, TransientFailure
from kgrag_assets.models.retrying import retry_after_seconds

DEFAULT_URL = "https://api.openai.com/v1"

# Codes by which a server says that waiting will not help: the account is empty.
_OUT_OF_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")


@dataclass(frozen=True)
class OpenAIServer:
    """One server. ``key`` never appears in the representation."""

    base_url: str
    key: str = field(repr=False)
    key_variable: str
    client: openai.OpenAI = field(repr=False)


def connect(base_url: str | None, api_key_env: str, timeout_s: float, what: str) -> OpenAIServer:
    """Prepare a client; nothing is sent yet.

    Args:
        base_url: the endpoint; empty for ``OPENAI_BASE_URL`` or OpenAI itself.
        api_key_env: environment variable that holds the key.
        timeout_s: seconds without a byte after which a call has timed out.
        what: who wants it, for error messages.

    Raises:
        ModelUnavailableError: the URL is not one, or the key is missing and the server is not on this machine.
    """
    url = checked_url(server_url(base_url), "base_url")
    key = key_from_environment(api_key_env, url, what)
    # Retries are ours: they are counted, obey Retry-After up to a bound, and can be interrupted.
    client = openai.OpenAI(
        api_key=key,
        base_url=url,
        timeout=timeout_s,
        max_retries=0,
        # A server on this machine is not behind the company's proxy.
        http_client=openai.DefaultHttpxClient(trust_env=not is_loopback(url)),
    )
    return OpenAIServer(url, key, api_key_env, client)


def server_url(base_url: str | None) -> str:
    """Return the endpoint: as given, or of the client's environment variable, or OpenAI itself."""
    return base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL


def failure_of(error: Exception, server: OpenAIServer, model: str) -> Exception:
    """Say what an exception of the client means: a ``TransientFailure``, or that the model is unavailable."""
    host = host_of(server.base_url)
    if isinstance(error, openai.APITimeoutError):
        return TransientFailure("timeout", f"no answer from {host} in time")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        detail = f"{type(cause).__name__}: {cause}" if cause is not None else str(error)
        return TransientFailure("error", without_secrets(f"no connection to {host}: {detail}", server.key))
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, server, model, host)
    return TransientFailure("error", without_secrets(f"{host} sent what is not JSON: {error}", server.key))


def _status_failure(error: openai.APIStatusError, server: OpenAIServer, model: str, host: str) -> Exception:
    status = error.status_code
    said = without_secrets(error.message, server.key)
    variable = server.key_variable
    for_good = {
        401: f"{host} refused the key: put a valid key into the environment variable {variable}",
        402: f"the account at {host} has no credit left: {said}",
        403: f"{host} does not allow the key in {variable} to use {model}: {said}",
        404: f"{host} knows no model {model!r} at {without_secrets(server.base_url)}: {said}; check the model's name "
        f"and the base_url (most servers want it to end in /v1)",
    }
    if error.code in _OUT_OF_CREDIT:
        status = 402
    if status in for_good:
        return ModelUnavailableError(f"{for_good[status]} (HTTP {error.status_code})")
    after = retry_after_seconds(error.response.headers.get("retry-after"))
    kinds = {429: "rate_limited", 408: "timeout", 504: "timeout"}
    return TransientFailure(kinds.get(status, "error"), f"HTTP {status} from {host}: {said}", after)
