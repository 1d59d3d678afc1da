"""The embedding and the reranking model that the settings name: in this process, or behind an endpoint."""

import ssl
from typing import Final

from pydantic import SecretStr

from memloop.wire.errors import Unprocessable
from memloop_clients import Timeouts
from memloop_clients.balancing.replica import Breaker
from memloop_clients.model_endpoint import EmbeddingsClient, RerankClient
from memory_store.embedding.bundled_encoder import BundledEncoder, is_bundled
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.endpoint_embedder import EndpointEmbedder, EndpointLimits
from memory_store.embedding.port import EmbeddingModel, Encoder
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, SentenceEncoder, usable_threads
from memory_store.metrics import Metrics
from memory_store.retrieval.rerank import CrossEncoderScorer, EndpointScorer, Reranker, Scorer, ThreadScorer
from memory_store.settings import ENDPOINT, Settings

_CONNECT_S: Final = 5.0
_FAILURES: Final = 5
_OPEN_S: Final = 5.0


def embedder_of(
    settings: Settings, metrics: Metrics, model: str, *, tls: ssl.SSLContext | None = None
) -> EmbeddingModel:
    """Return a model of that name, which is not started. Raises ``Unprocessable`` if its endpoint is not set."""
    if model.startswith(ENDPOINT):
        return _remote_embedder(settings, metrics, model.removeprefix(ENDPOINT), tls)

    return BatchingEmbedder(
        lambda: encoder_of(settings, model),
        metrics=metrics,
        max_batch=settings.embedding_batch,
        max_waiting=settings.embedding_waiting,
        cached=settings.embedding_cache,
    )


def encoder_of(settings: Settings, model: str) -> Encoder:
    """Load a model into this process: the default from its bundle, if there is one, and any other by torch.

    Raises ``ModelsNotInstalled`` where torch is needed and missing.
    """
    threads, batch = settings.embedding_threads or usable_threads(), settings.embedding_batch
    if model == DEFAULT_MODEL and is_bundled():
        return BundledEncoder(threads=threads, batch=batch, precision=settings.embedding_precision)
    return SentenceEncoder(model, threads=threads, batch=batch, precision=settings.embedding_precision)


def _remote_embedder(settings: Settings, metrics: Metrics, model: str, tls: ssl.SSLContext | None) -> EmbeddingModel:
    if settings.embedding_url is None:
        raise Unprocessable(f"{ENDPOINT}{model} needs MEMLOOP_EMBEDDING_URL", param="model", code="no_embedding_url")
    dimension = settings.embedding_dimension
    client = EmbeddingsClient(
        settings.embedding_url,
        model=model,
        api_key=secret_of(settings.embedding_api_key),
        timeouts=_within(settings.embedding_timeout_s),
        dimensions=dimension if settings.embedding_shorten else None,
        tls=tls,
    )
    limits = EndpointLimits(
        timeout_s=settings.embedding_timeout_s,
        query_timeout_s=settings.embedding_query_timeout_s,
        max_batch=settings.embedding_batch,
        max_waiting=settings.embedding_waiting,
        cached=settings.embedding_cache,
    )
    return EndpointEmbedder(client, _breaker("embedding endpoint"), metrics=metrics, dimension=dimension, limits=limits)


def reranker_of(settings: Settings, *, tls: ssl.SSLContext | None = None) -> Reranker | None:
    """Return the reranker, which is not started; None without a model."""
    model = settings.rerank_model
    if model is None:
        return None
    if model.startswith(ENDPOINT):
        client = RerankClient(
            settings.rerank_url or "",
            model=model.removeprefix(ENDPOINT),
            api_key=secret_of(settings.rerank_api_key),
            timeouts=_within(settings.rerank_timeout_s),
            tls=tls,
        )
        scorer: Scorer = EndpointScorer(client, _breaker("reranking endpoint"))
    else:
        scorer = ThreadScorer(lambda: CrossEncoderScorer(model))
    return Reranker(scorer, depth=settings.rerank_candidates, budget_s=settings.rerank_timeout_s)


def _breaker(peer: str) -> Breaker:
    return Breaker(failures=_FAILURES, open_s=_OPEN_S, peer=peer)


def _within(total_s: float) -> Timeouts:
    return Timeouts(connect_s=min(_CONNECT_S, total_s), read_s=total_s, total_s=total_s)


def secret_of(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value else None
