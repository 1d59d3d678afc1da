"""Points with numbers, and the collection that holds them."""

import uuid

from pydantic import JsonValue

from memory_store.embedding.encoding import Bm25
from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import NO_WORDS, Point
from memory_store.vectors.schema import CollectionSpec

SPEC = CollectionSpec("contract", 4)
EVERYTHING = AllOf(())


BM25 = Bm25()


def point(number: int, text: str = "", *, dense: tuple[float, ...] = (1, 0, 0, 0), **payload: JsonValue) -> Point:
    return Point(id_of(number), dense, BM25.document(text) if text else NO_WORDS, {"n": number, **payload})


def id_of(number: int) -> str:
    return str(uuid.UUID(int=number))
