"""Documents in the storage: their chunks are those of the whole text, loaded one at a time."""

import tracemalloc
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.files.blobs import Blobs
from gateway.files.storage import Storage
from gateway.files.texts import ChunkIndex, store_text, stored_chunks, utf8_blocks
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.ports import Chunk, Splitter
from memloop.profiles import well_formed
from memloop.wire.errors import NotFound, TooLarge, Unavailable
from memloop_state.contents import Quota
from tests.fakes.web_server import serving
from tests.gateway.file_uploads import stored
from tests.gateway.redis_view import connected
from tests.memloop.tokenizers_of_tests import PROSE, byte_level_bpe

BPE = TokenizerSplitter(byte_level_bpe())
TEXTS = st.lists(
    st.sampled_from(["Ishmael ", "\u00e9", "\u6f22\u5b57", "\U0001f469\u200d\U0001f467", "\n\n", "\0", "\ud800"])
    | st.text(),
    min_size=1,
    max_size=60,
).map("".join)


@pytest.fixture
async def blobs(redis_url: str, tmp_path: Path) -> AsyncGenerator[Blobs]:
    """An empty storage in a folder."""
    async with connected(redis_url) as redis:
        yield Blobs(redis, Storage.at(tmp_path.as_uri()), Quota(10, 1 << 30))


async def chunks_of(blobs: Blobs, text: str, splitter: Splitter, chunk_tokens: int) -> list[Chunk]:
    blob = await store_text(blobs, "t", utf8_blocks(text), holder="read:lr_1")
    chunks = await stored_chunks(blobs.storage, blob, splitter, chunk_tokens=chunk_tokens)
    return [await chunks.chunk(index) for index in range(len(chunks))]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=TEXTS, chunk_tokens=st.integers(min_value=1, max_value=40))
@pytest.mark.parametrize("splitter", [BPE, EstimatingSplitter()], ids=["bpe", "estimate"])
async def test_a_stored_text_has_the_chunks_of_the_whole_text(
    blobs: Blobs, splitter: Splitter, text: str, chunk_tokens: int
) -> None:
    whole = splitter.split(well_formed(text), chunk_tokens=chunk_tokens)
    assert await chunks_of(blobs, text, splitter, chunk_tokens) == list(whole)


async def test_characters_of_many_bytes_at_the_blocks_edges_stay_whole(blobs: Blobs) -> None:
    text = "\u6f22\u5b57\u00e9x" * 100_000
    assert await chunks_of(blobs, text, BPE, 5000) == list(BPE.split(text, chunk_tokens=5000))


async def test_chunks_load_in_any_order_with_their_positions(blobs: Blobs) -> None:
    text = PROSE * 200
    blob = await store_text(blobs, "t", utf8_blocks(text), holder="read:lr_1")
    chunks = await stored_chunks(blobs.storage, blob, BPE, chunk_tokens=50)
    whole = BPE.split(text, chunk_tokens=50)
    for index in (len(whole) - 1, 0, len(whole) // 2, 1):
        assert await chunks.chunk(index) == whole[index]
        assert chunks.span(index) == whole.span(index)
    with pytest.raises(IndexError):
        chunks.span(len(whole))


async def test_the_index_is_made_once_and_another_tokenizer_gets_its_own(blobs: Blobs, tmp_path: Path) -> None:
    blob = await store_text(blobs, "t", utf8_blocks(PROSE), holder="read:lr_1")
    for splitter in (BPE, EstimatingSplitter(), BPE):
        await stored_chunks(blobs.storage, blob, splitter, chunk_tokens=50)
    assert stored(tmp_path) == ["chunks-estimate-50", f"chunks-{BPE.name}-50", "data"]


async def test_a_text_keeps_the_newest_four_of_its_indexes(blobs: Blobs, tmp_path: Path) -> None:
    blob = await store_text(blobs, "t", utf8_blocks(PROSE), holder="read:lr_1")
    for chunk_tokens in range(20, 30):
        await stored_chunks(blobs.storage, blob, BPE, chunk_tokens=chunk_tokens)
    assert stored(tmp_path) == [*(f"chunks-{BPE.name}-{size}" for size in range(26, 30)), "data"]


def test_an_index_survives_its_bytes_and_a_strange_one_is_made_again() -> None:
    index = ChunkIndex.of([PROSE.encode()], BPE, chunk_tokens=20)
    assert ChunkIndex.load(index.dump()) == index
    assert ChunkIndex.load(b"another version\nlittle\n0\n") is None


async def test_a_long_text_is_stored_indexed_and_read_in_bounded_memory(blobs: Blobs) -> None:
    part = PROSE.encode() * (1 + (1 << 18) // len(PROSE))

    async def long_text() -> AsyncGenerator[bytes]:
        for _ in range(30 * (1 << 20) // len(part)):
            yield part

    tracemalloc.start()
    blob = await store_text(blobs, "t", long_text(), holder="read:lr_1")
    chunks = await stored_chunks(blobs.storage, blob, EstimatingSplitter(), chunk_tokens=5000)
    for index in range(0, len(chunks), 50):
        await chunks.chunk(index)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert blob.size_bytes > 29 << 20
    assert peak < 10 << 20


async def test_over_the_quota_nothing_stays(blobs: Blobs, tmp_path: Path, redis_url: str) -> None:
    async with connected(redis_url) as redis:
        small = Blobs(redis, blobs.storage, Quota(10, 10))
        with pytest.raises(TooLarge):
            await store_text(small, "t", utf8_blocks("x" * 11), holder="read:lr_1")
    assert stored(tmp_path) == []


async def test_a_document_that_is_gone_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await Storage.at(tmp_path.as_uri()).read("t/none", start=0, end=1)


def bucket_at(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Storage:
    variables = {"ENDPOINT": endpoint, "ALLOW_HTTP": "true", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
    for name, value in variables.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return Storage.at("s3://bucket/prefix")


async def test_a_lost_storage_is_another_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable):
        await bucket_at("http://127.0.0.1:1", monkeypatch).read("t/none", start=0, end=1)


async def test_a_bucket_is_asked_over_plain_http_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def nothing_there(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>", content_type="application/xml")

    async with serving([web.get("/{path:.*}", nothing_there)]) as endpoint:
        with pytest.raises(NotFound):
            await bucket_at(endpoint, monkeypatch).read("t/none", start=0, end=1)
    assert asked == ["/bucket/prefix/t/none/data"]


@pytest.mark.parametrize("url", ["nonsense", "ftp://x/y", ""])
def test_a_storage_url_that_means_nothing_is_a_mistake(url: str) -> None:
    with pytest.raises(ValueError, match="MEMLOOP_STORAGE_URL"):
        Storage.at(url)
