"""Keeps keys and values of many rows in one block of memory, each row filled from its own start.

During a forward pass transformers calls one method of a cache: store a layer's new keys and values and return those
that attention uses. The two views here do that, for whole prompts and for one token in every row.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor


class CacheView(Protocol):
    """The cache interface that a transformers model needs when every mask is passed to it."""

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Store new keys and values (rows, heads, tokens, head size); return those that attention uses."""
        ...


class RowCache:
    """``rows`` of ``length`` tokens, for a model with one kind of attention. ``used`` (rows,) are the lengths."""

    def __init__(self, config: Any, *, rows: int, length: int, dtype: torch.dtype) -> None:
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        shape = (config.num_hidden_layers, rows, heads, length, size)
        self.rows, self.length = rows, length
        self.keys, self.values = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)
        self.used = torch.zeros(rows, dtype=torch.long)

    def filling(self, first_row: int, source: Sequence[int], lengths: Tensor) -> _Filling:
        """Return a view that prefills prompts: ``source[i]``, of ``lengths[i]`` tokens, goes to ``first_row + i``."""
        rows = slice(first_row, first_row + len(source))
        self.used[rows] = lengths
        return _Filling(self, rows, list(source))

    def extending(self, rows: int) -> _Extending:
        """Return a view that adds one token to each of the first rows."""
        view = _Extending(self, self.used[:rows].clone())
        self.used[:rows] += 1
        return view

    def move(self, row: int, to: int) -> None:
        """Copy a row over another."""
        used = int(self.used[row])
        self.keys[:, to, :, :used] = self.keys[:, row, :, :used]
        self.values[:, to, :, :used] = self.values[:, row, :, :used]
        self.used[to] = used


class _Filling:
    def __init__(self, cache: RowCache, rows: slice, source: list[int]) -> None:
        self._cache, self._rows, self._source = cache, rows, source

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        tokens = key_states.shape[2]
        self._cache.keys[layer_idx, self._rows, :, :tokens] = key_states[self._source]
        self._cache.values[layer_idx, self._rows, :, :tokens] = value_states[self._source]
        return key_states, value_states


class _Extending:
    """The ``positions`` (rows, 1) of the new tokens, and the attention ``mask`` (rows, 1, 1, longest) of each."""

    def __init__(self, cache: RowCache, at: Tensor) -> None:
        self._cache, self._at = cache, at
        self._every = torch.arange(len(at))
        self._longest = int(at.max()) + 1
        self.positions = at[:, None]
        self.mask = (torch.arange(self._longest) <= at[:, None])[:, None, None]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        keys, values = self._cache.keys[layer_idx], self._cache.values[layer_idx]
        keys[self._every, :, self._at] = key_states[:, :, 0]
        values[self._every, :, self._at] = value_states[:, :, 0]
        rows = len(self._every)
        return keys[:rows, :, : self._longest], values[:rows, :, : self._longest]
