"""Describes a trained checkpoint, in the file ``export.json`` beside its weights.

The trainer writes it, the launcher serves it to its clients, and the gate compares both.
"""

from typing import Final

from memloop.wire.base import OpenWire

RECORD: Final = "export.json"


class TrainedBy(OpenWire):
    """The recipe of a run: its file's name, what it optimised, and the files that it trained on."""

    recipe: str
    objective: str
    reward: str
    data: tuple[str, ...]


class CheckpointRecord(OpenWire):
    """Where weights come from, and which prompts they were trained on.

    ``profile`` is a profile's reference; hashes are SHA-256 in hex. ``tokenizer_sha256`` is of the tokenizer's files of
    the checkpoint that training started from, ``weights_sha256`` of the weights' files in the order of their names.
    """

    started_from: str
    step: int
    dtype: str
    profile: str
    profile_hash: str
    tools_hash: str
    tokenizer_sha256: str
    weights_sha256: str
    trained_by: TrainedBy | None = None
