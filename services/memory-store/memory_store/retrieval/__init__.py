"""Search: two rankings of one namespace, fused, then raised by what the question says of speakers, times and turns."""

from memory_store.retrieval.search import Retrieval
from memory_store.retrieval.tuning import Tuning

__all__ = ["Retrieval", "Tuning"]
