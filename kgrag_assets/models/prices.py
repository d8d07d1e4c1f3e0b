"""What a call cost: the price list and how tokens become US dollars."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import yaml

from kgrag_assets.models.endpoints import host_of, is_loopback

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


class PriceListError(ValueError):
    """The price list cannot be read; the message names the entry and what it should be."""


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Return the cost of a call in US dollars."""
        return (tokens_in * self.input + tokens_out * self.output) / 1_000_000


FREE = Price(0.0, 0.0)


@dataclass(frozen=True)
class PriceList:
    """Prices by server (host name) and model."""

    servers: Mapping[str, Mapping[str, Price]]

    def price(self, base_url: str, model: str) -> Price | None:
        """Return the price of a model on a server: free on this machine, None where none is known."""
        if is_loopback(base_url):
            return FREE
        models = self.servers.get(host_of(base_url), {})
        return models.get(model) or models.get(_DATED.sub("", model))


def _amount(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise PriceListError(f"{where}: {value!r} is not a price: use US dollars per million tokens, 0 or more")
    return float(value)


def read_prices(text: str, origin: str) -> PriceList:
    """Read a price list from YAML: ``servers: {host: {model: {input: …, output: …}}}``.

    Raises:
        PriceListError: it is not YAML, or an entry is not a price.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PriceListError(f"{origin} is not YAML: {error}") from error
    servers = document.get("servers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise PriceListError(f"{origin}: expected 'servers:' with one entry per host name")
    found: dict[str, dict[str, Price]] = {}
    for host, models in servers.items():
        if not isinstance(models, dict):
            raise PriceListError(f"{origin}: servers.{host} must list models with their prices")
        prices: dict[str, Price] = {}
        for model, price in models.items():
            where = f"{origin}: servers.{host}.{model}"
            if not isinstance(price, dict) or set(price) != {"input", "output"}:
                raise PriceListError(f"{where}: expected {{input: …, output: …}} in US dollars per million tokens")
            prices[str(model)] = Price(_amount(price["input"], where), _amount(price["output"], where))
        found[str(host).lower()] = prices
    return PriceList(found)


@cache
def default_prices() -> PriceList:
    """Return the price list that ships beside this module (``prices.yaml``).

    Raises:
        PriceListError: somebody's edit of it cannot be read.
    """
    path = resources.files("kgrag_assets.models") / "prices.yaml"
    return read_prices(path.read_text(encoding="utf-8"), str(path) if isinstance(path, Path) else "prices.yaml")
