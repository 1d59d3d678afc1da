"""What the process reads from its environment, once, in ``main``."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AliasChoices, Field, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from memloop.wire.fields import STORE_BODY_BYTES
from memloop_service import ServiceSettings
from memloop_service.settings import EMPTY_IS_UNSET
from memory_store.embedding.graph import Precision
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from memory_store.vectors.edge_collection import FLOOR_BYTES, LEAST_FREE_BYTES

ENDPOINT = "endpoint:"
"""Begins the name of a model that is served elsewhere."""
MOST_JUDGED = 50
"""The cost of a cross-encoder grows with every candidate."""


class Settings(ServiceSettings):
    """``MEMLOOP_`` before each name, but for Qdrant's own: ``QDRANT_URL``, ``QDRANT_API_KEY``, ``QDRANT_GRPC_PORT``.

    An empty variable counts as not set. Durations are in the unit of their names.
    """

    model_config = SettingsConfigDict(populate_by_name=True)

    port: int = Field(default=7801, ge=0, le=65_535)
    max_body_bytes: int = Field(default=STORE_BODY_BYTES, ge=STORE_BODY_BYTES)
    """Not less than what the gateway admits and keeps until the store takes it."""
    store_key: Annotated[SecretStr | None, EMPTY_IS_UNSET] = None
    """The bearer key of the internal API; without one the process listens on the loopback only."""
    redis_url: str = "redis://127.0.0.1:6379/0"
    redis_ack_copies: int = Field(default=0, ge=0)
    """The replicas that must have a buffer before it is acknowledged."""
    qdrant_url: Annotated[str | None, EMPTY_IS_UNSET] = Field(default=None, validation_alias=AliasChoices("QDRANT_URL"))
    """A Qdrant server (1.20 or newer), or several nodes of one cluster; else Edge keeps the vectors in ``data_dir``."""
    qdrant_api_key: Annotated[SecretStr | None, EMPTY_IS_UNSET] = Field(
        default=None, validation_alias=AliasChoices("QDRANT_API_KEY")
    )
    qdrant_grpc_port: Annotated[int | None, EMPTY_IS_UNSET] = Field(
        default=None, ge=1, le=65_535, validation_alias=AliasChoices("QDRANT_GRPC_PORT")
    )
    """Of the same host, which is then one; unset, everything goes over REST."""
    qdrant_shards: Annotated[int | None, EMPTY_IS_UNSET] = Field(default=None, ge=1)
    """Of a collection that is made on a distributed server; unset: two for each of its nodes."""
    qdrant_replicas: int = Field(default=1, ge=1)
    """How many nodes have each shard of a collection that is made."""
    qdrant_write_consistency: int = Field(default=1, ge=1)
    """How many of them must have a write before it is acknowledged."""
    data_dir: Path = Path(".memloop/edge")
    edge_flush_s: float = Field(default=15.0, gt=0)
    """The most that a power cut can take; a killed process loses nothing."""
    edge_free_bytes: int = Field(default=LEAST_FREE_BYTES, ge=2 * FLOOR_BYTES)
    """New memories are refused while less is free on the disk of ``data_dir``; reads and erasures go on."""
    embedding_model: str = DEFAULT_MODEL
    """A sentence-transformers model, by folder or name, or ``endpoint:`` and a model that ``embedding_url`` serves."""
    embedding_url: Annotated[str | None, EMPTY_IS_UNSET] = None
    """Base URL of an OpenAI-compatible endpoint; ``/embeddings`` is added."""
    embedding_api_key: Annotated[SecretStr | None, EMPTY_IS_UNSET] = None
    embedding_dimension: Annotated[int | None, EMPTY_IS_UNSET] = Field(default=None, ge=1)
    """Of the endpoint's vectors; checked at the start, and lets the store start while the endpoint is away."""
    embedding_shorten: bool = False
    """Asks the endpoint for vectors of that dimension."""
    embedding_timeout_s: float = Field(default=30.0, gt=0)
    """For one batch, repetitions included."""
    embedding_query_timeout_s: float = Field(default=1.0, gt=0)
    """Then a search goes by words alone."""
    embedding_threads: Annotated[int | None, EMPTY_IS_UNSET] = Field(default=None, ge=1)
    """Unset: a thread for each core that this process may use, four at most."""
    embedding_batch: int = Field(default=32, ge=1)
    embedding_waiting: int = Field(default=2048, ge=1)
    """Texts to store, and as many queries, that may wait for their vectors; more are refused."""
    embedding_precision: Precision = "auto"
    embedding_cache: int = Field(default=4096, ge=0)
    """Texts whose vectors are kept in memory, 1.5 KB each with the default model."""
    embedding_start_empty: bool = False
    """Allows a new, empty collection beside those of other embedding models."""
    rerank_model: Annotated[str | None, EMPTY_IS_UNSET] = None
    """A cross-encoder that judges the best results of a search: a folder, a name, or ``endpoint:`` and a model."""
    rerank_url: Annotated[str | None, EMPTY_IS_UNSET] = None
    """Base URL of an endpoint in the form of Cohere, Jina and vLLM; ``/rerank`` is added."""
    rerank_api_key: Annotated[SecretStr | None, EMPTY_IS_UNSET] = None
    rerank_candidates: int = Field(default=20, ge=1, le=MOST_JUDGED)
    rerank_timeout_s: float = Field(default=0.5, gt=0)
    """Then a search keeps the order that it had."""
    bm25_language: str = "english"
    near_duplicate_similarity: Annotated[float | None, EMPTY_IS_UNSET] = Field(default=None, gt=0, le=1)
    raw_turn_days: float = Field(default=30.0, gt=0)
    deleted_days: float = Field(default=30.0, gt=0)
    changes_most: int = Field(default=100_000, ge=1)
    """The changes that a tenant's feed keeps."""
    changes_days: float = Field(default=7.0, gt=0)
    """How long a feed keeps a change at the longest."""
    sweep_s: float = Field(default=300.0, gt=0)
    buffer_max_turns: int = Field(default=200, ge=1)

    @model_validator(mode="after")
    def _whole_endpoints(self) -> Self:
        for model, url, names in (
            (self.embedding_model, self.embedding_url, ("MEMLOOP_EMBEDDING_MODEL", "MEMLOOP_EMBEDDING_URL")),
            (self.rerank_model, self.rerank_url, ("MEMLOOP_RERANK_MODEL", "MEMLOOP_RERANK_URL")),
        ):
            if model is not None and model.startswith(ENDPOINT) and url is None:
                raise ValueError(f"{names[0]}={model} needs {names[1]}")
        if self.rerank_url is not None and not (self.rerank_model or "").startswith(ENDPOINT):
            raise ValueError(f"MEMLOOP_RERANK_URL needs MEMLOOP_RERANK_MODEL={ENDPOINT} and the name of its model")
        if self.embedding_shorten and self.embedding_dimension is None:
            raise ValueError("MEMLOOP_EMBEDDING_SHORTEN needs MEMLOOP_EMBEDDING_DIMENSION")
        if self.qdrant_grpc_port is not None and len(self.qdrant_urls) > 1:
            raise ValueError("QDRANT_GRPC_PORT needs a QDRANT_URL with one address")
        return self

    @property
    def qdrant_urls(self) -> list[str]:
        """The addresses in ``qdrant_url``, which commas separate."""
        return [url.strip() for url in (self.qdrant_url or "").split(",") if url.strip()]
