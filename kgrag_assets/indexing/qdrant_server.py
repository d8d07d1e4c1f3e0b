"""How a Qdrant server is reached, and what its refusals mean to the user; the only file that makes its client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_REFUSED = (401, 403)
_PORT = 6333


class IndexServerError(RuntimeError):
    """A served index cannot be reached or refuses; the message names the server and what to do."""


@dataclass(frozen=True)
class QdrantPlace:
    """Where the collections are.

    ``location`` is a server's URL (port 6333 where it names none), ``:memory:``, or a folder that this process alone
    uses. The key of a server is read from the environment variable ``api_key_env`` when the client is made, and kept
    nowhere else.
    """

    location: str
    api_key_env: str = "QDRANT_API_KEY"
    timeout_s: int = 60

    @property
    def is_server(self) -> bool:
        """Whether the location is a URL."""
        return self.location.startswith(("http://", "https://"))

    @property
    def shown(self) -> str:
        """The location as messages may show it: without a name and password that stand in a URL."""
        if not self.is_server:
            return f"Qdrant at {self.location}"
        parts = urlsplit(self.location)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return f"the Qdrant server {parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"

    def client(self) -> QdrantClient:
        """Make a client.

        Raises:
            IndexServerError: the client is not installed, or another process uses the folder.
        """
        try:
            from qdrant_client import QdrantClient
        except ImportError as error:
            raise IndexServerError(
                "the package qdrant-client is not installed: install it with pip, or use the embedded index"
            ) from error
        if self.location == ":memory:":
            return QdrantClient(":memory:")
        if not self.is_server:
            try:
                return QdrantClient(path=self.location)
            except RuntimeError as error:
                raise IndexServerError(
                    f"another process uses {self.shown}: wait for it to end, or run a server"
                ) from error
        try:
            port = urlsplit(self.location).port or _PORT
        except ValueError:
            # The address may hold a password: it is not shown.
            raise IndexServerError("the port of the Qdrant server is no number: write http://HOST:PORT") from None
        # Asking the server for its version would be one more call that can fail.
        return QdrantClient(
            url=self.location,
            port=port,
            api_key=os.environ.get(self.api_key_env) or None,
            timeout=self.timeout_s,
            check_compatibility=False,
        )

    @contextmanager
    def explained(self, doing: str) -> Iterator[None]:
        """Turn the client's errors into one that names the server and what to do; none of them shows the key."""
        from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

        try:
            yield
        except UnexpectedResponse as error:
            if error.status_code in _REFUSED:
                raise IndexServerError(
                    f"{self.shown} refuses the key: set the environment variable {self.api_key_env} to a key "
                    f"that may read and write"
                ) from None
            raise IndexServerError(
                f"{self.shown} answered {error.status_code} {error.reason_phrase} while {doing}: see the server's "
                f"log, then run again; rows that arrived are not sent twice"
            ) from None
        except ResponseHandlingException as error:
            raise IndexServerError(
                f"{self.shown} cannot be reached while {doing} ({type(error.source).__name__}): check that it runs "
                f"and that the address is right, then run again; rows that arrived are not sent twice"
            ) from None
        except ApiException as error:
            raise IndexServerError(f"{self.shown} failed while {doing} ({type(error).__name__}): run again") from None
