"""OpenAI's vector stores: uploaded files in chunks, which the memory store indexes and searches."""

from gateway.vector_stores.schemas import FileSearch as FileSearch
from gateway.vector_stores.schemas import Found as Found
from gateway.vector_stores.slice import VectorStores as VectorStores
from gateway.vector_stores.slice import VectorStoresDep as VectorStoresDep
from gateway.vector_stores.slice import open_vector_stores as open_vector_stores
