"""An Ollama server as chat models and embedders share it: address, client, and what failures mean."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

import httpx
import ollama

from kgrag_assets.models.endpoints import checked_url, host_of, is_loopback, without_secrets
from kgrag_assets.models.errors import ModelUnavailableError, TransientFailure
from kgrag_assets.models.retrying import retry_after_seconds

DEFAULT_URL = "http://127.0.0.1:11434"

# What the client raises for what a server does: its own error, a refused connection, a broken
# exchange, and a body that is not JSON or not of the expected form (TypeError and AttributeError: the
# client takes JSON for an object without looking, in an answer and in an error).
CLIENT_ERRORS = (ollama.ResponseError, ConnectionError, httpx.HTTPError, ValueError, TypeError, AttributeError)


class _Remembered(threading.local):
    retry_after: str | None = None


@dataclass(frozen=True)
class OllamaServer:
    """One server. The client keeps no response headers, so ``last`` notes the one that matters, per thread."""

    base_url: str
    client: ollama.Client = field(repr=False)
    last: _Remembered = field(repr=False)
    key: str = field(default="", repr=False)


def connect(base_url: str | None, timeout_s: float) -> OllamaServer:
    """Prepare a client; nothing is sent yet.

    Args:
        base_url: the server; empty for ``OLLAMA_HOST`` or this machine's port 11434.
        timeout_s: seconds without a byte after which a call has timed out.

    Raises:
        ModelUnavailableError: the URL is not one.
    """
    url = base_url or os.environ.get("OLLAMA_HOST") or DEFAULT_URL
    # OLLAMA_HOST may be a bare host:port, and 0.0.0.0 there means "serve everywhere".
    url = checked_url(url if "://" in url else f"http://{url}", "base_url").replace("://0.0.0.0", "://127.0.0.1", 1)
    last = _Remembered()

    def note(response: httpx.Response) -> None:
        last.retry_after = response.headers.get("retry-after")

    # A server on this machine is not behind the company's proxy.
    client = ollama.Client(
        host=url, timeout=timeout_s, event_hooks={"response": [note]}, trust_env=not is_loopback(url)
    )
    # The client reads the variable by itself; here it is known only to be kept out of error texts.
    return OllamaServer(url, client, last, os.environ.get("OLLAMA_API_KEY", ""))


def require_model(server: OllamaServer, model: str) -> None:
    """Ask the server whether it has a model.

    Raises:
        ModelUnavailableError: it has not, or does not answer; the message says what to do.
    """
    try:
        server.client.show(model)
    except CLIENT_ERRORS as error:
        failure = failure_of(error, server, model)
        if isinstance(failure, ModelUnavailableError):
            raise failure from None
        # A server that answers chats and nothing else is no reason to stop; one that is not there is.
        if isinstance(error, ConnectionError | httpx.ConnectError | httpx.TimeoutException):
            raise ModelUnavailableError(str(failure)) from None


def failure_of(error: Exception, server: OllamaServer, model: str) -> Exception:
    """Say what an exception of the client means: a ``TransientFailure``, or that the model is unavailable."""
    host = host_of(server.base_url)
    if isinstance(error, httpx.TimeoutException):
        return TransientFailure("timeout", f"no answer from {host} in time")
    if isinstance(error, ConnectionError):
        return TransientFailure("error", f"no connection to {host}: is Ollama running there? Start it: ollama serve")
    if isinstance(error, httpx.HTTPError):
        return TransientFailure(
            "error", without_secrets(f"connection to {host}: {type(error).__name__}: {error}", server.key)
        )
    if isinstance(error, ollama.ResponseError):
        return _status_failure(error, server, model, host)
    return TransientFailure("error", without_secrets(f"{host} sent what is not an answer: {error}", server.key))


def _status_failure(error: ollama.ResponseError, server: OllamaServer, model: str, host: str) -> Exception:
    status, said = error.status_code, without_secrets(str(error.error), server.key)
    if status == 404:
        return ModelUnavailableError(
            f"Ollama at {host} has no model {model!r}: fetch it there with: ollama pull {model}"
        )
    if status in (401, 403):
        return ModelUnavailableError(
            f"Ollama at {host} wants a valid key (HTTP {status}): put it into the environment variable OLLAMA_API_KEY"
        )
    after = retry_after_seconds(server.last.retry_after)
    if status == 429:
        return TransientFailure("rate_limited", f"HTTP 429 from {host}: {said}", after)
    if status in (408, 504):
        return TransientFailure("timeout", f"HTTP {status} from {host}: {said}")
    return TransientFailure("error", f"HTTP {status} from {host}: {said}", after)
