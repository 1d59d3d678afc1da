"""The Parquet schemas of the rows (:mod:`trainer.data.rows`)."""

# pyarrow has no annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

_TEXTS = pa.list_(pa.string())
_COMMON = [
    ("data_source", pa.string()),
    ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
    ("ability", pa.string()),
    ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", _TEXTS)])),
    ("agent_name", pa.string()),
    ("context", pa.string()),
]
_TURN = pa.struct([("role", pa.string()), ("content", pa.string()), ("timestamp", pa.string())])
_HELD = pa.struct([("id", pa.string()), ("text", pa.string()), ("valid_from", pa.string()), ("key", pa.string())])
_READING_INFO = pa.struct(
    [
        ("index", pa.int64()),
        ("id", pa.string()),
        ("question", pa.string()),
        ("num_docs", pa.int64()),
        ("evidence", pa.list_(pa.int64())),
    ]
)
_WRITING_INFO = pa.struct(
    [
        ("index", pa.int64()),
        ("id", pa.string()),
        ("question", pa.string()),
        ("conversation", pa.list_(_TURN)),
        ("memories", pa.list_(_HELD)),
    ]
)
READING: Final[Any] = pa.schema([*_COMMON, ("extra_info", _READING_INFO)])
"""Rows of the reading loops."""
WRITING: Final[Any] = pa.schema([*_COMMON, ("extra_info", _WRITING_INFO)])
"""Rows of the memory writer; the ground truth is the gold decision: its action, then the stored memories."""

_CALL = pa.struct(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())])),
    ]
)
_MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("reasoning_content", pa.string()),
        ("tool_calls", pa.list_(_CALL)),
        ("tool_call_id", pa.string()),
    ]
)
CONVERSATION: Final[Any] = pa.schema(
    [
        ("data_source", pa.string()),
        ("messages", pa.list_(_MESSAGE)),
        ("tools", pa.string()),
        ("enable_thinking", pa.bool_()),
        ("learned", pa.list_(pa.int64())),
        ("extra_info", pa.struct([("index", pa.int64()), ("id", pa.string()), ("kind", pa.string())])),
    ]
)
"""Rows to imitate: the messages that the served loop sent and received; ``tools`` is its JSON list of tools.

``learned`` are the positions of the replies to learn.
"""
