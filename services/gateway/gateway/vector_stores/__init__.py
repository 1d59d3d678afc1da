"""OpenAI's vector stores: uploaded files in chunks, which the memory store indexes and searches."""

from gateway.vector_stores.schemas import FileSearch, Found
from gateway.vector_stores.slice import VectorStores, VectorStoresDep, open_vector_stores

__all__ = ["FileSearch", "Found", "VectorStores", "VectorStoresDep", "open_vector_stores"]
