"""Search: two rankings of one namespace, fused, then boosted by the times that the question names and by neighbours."""

from memory_store.retrieval.relevance import Tuning
from memory_store.retrieval.search import Retrieval

__all__ = ["Retrieval", "Tuning"]
