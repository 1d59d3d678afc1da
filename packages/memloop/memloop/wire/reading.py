"""Improvements of a read over the published loops, each off by default: ``options`` of ``/v1/long-read``.

Sources: GRU-Mem and InfMem (gates), MHM-LRU (memory heads); ``parallel``, ``retrieved`` and ``questions`` are ours.
"""

from typing import Annotated

from pydantic import Field

from memloop.wire.base import Integral, Wire


class Parallel(Wire):
    """Segments of the document are read side by side; a last pass reads their memories, in order."""

    segments: Annotated[int, Integral] = Field(default=8, ge=2, le=64)


class Gated(Wire):
    """Read less: ``exit`` stops a pass when the memory suffices, ``skip`` lets the model leave the memory as it is.

    Without ``skip`` the judge is asked, after each chunk that changed the memory, whether it suffices. With ``skip``
    the profile's ``gate`` prompt takes the place of ``read``, and the model says both in its reply.
    """

    exit: bool = True
    skip: bool = False


class Retrieved(Wire):
    """A reread visits only the ``chunks`` best for its sub-question (BM25), in document order."""

    chunks: Annotated[int, Integral] = Field(default=8, ge=1, le=1000)


class MhmLru(Wire):
    """The memory is split into ``heads``; a chunk rewrites only the least recently updated; the answer sees all."""

    heads: Annotated[int, Integral] = Field(default=4, ge=2, le=16)


class ReadingOptions(Wire):
    """The improvements of a read. ``parity`` reads as published instead, and goes with none of them."""

    parallel: Parallel | None = None
    gated: Gated | None = None
    retrieved: Retrieved | None = None
    mhm_lru: MhmLru | None = None
    parity: bool = False
