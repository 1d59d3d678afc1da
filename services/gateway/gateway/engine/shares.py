"""Chooses who serves a request while a candidate takes a share of a model's requests."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_POINTS: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Share:
    """The candidate of a model, and its share of the model's requests, 0 to 1."""

    candidate: str
    share: float


class Shares:
    """The shares of all models that have a candidate. Equal keys get equal answers in every process."""

    def __init__(self) -> None:
        self._by_model: Mapping[str, Share] = {}

    def replace(self, shares: Mapping[str, Share]) -> None:
        """Follow these shares from now on."""
        self._by_model = shares

    def target_of(self, model: str, key: str | None) -> str:
        """Return the id of the model that serves the key's requests; without a key each request counts by itself.

        A key that a share sends to the candidate goes there under every larger share too.
        """
        share = self._by_model.get(model)
        if share is None:
            return model
        place = _place_of(f"{model}\n{share.candidate}\n{secrets.token_hex(8) if key is None else key}")
        return share.candidate if place < share.share else model


def _place_of(text: str) -> float:
    """Return a place from 0 to 1, spread evenly."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / _POINTS
