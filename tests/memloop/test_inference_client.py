from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from memloop.profiles import ProfileError, load_profile, profile_files
from memloop.wire.errors import DependencyError, Unavailable
from memloop_clients import InferenceClient
from tests.fakes.web_server import serving


@asynccontextmanager
async def launcher(path: str, body: object, status: int = 200) -> AsyncGenerator[InferenceClient]:
    async def handle(_: web.Request) -> web.StreamResponse:
        if isinstance(body, bytes):
            return web.Response(body=body, status=status)
        return web.json_response(body, status=status)

    async with serving([web.get(path, handle)]) as url, InferenceClient(url) as client:
        yield client


async def test_the_profile_of_the_served_model_is_the_one_it_was_made_from() -> None:
    body = {"ref": "tiny@1", "files": profile_files("tiny")}
    async with launcher("/v1/profile", body) as client:
        assert await client.profile() == load_profile("tiny")


async def test_the_tokenizer_comes_as_bytes() -> None:
    async with launcher("/v1/tokenizer", b"{}") as client:
        assert await client.tokenizer() == b"{}"


async def test_the_model_has_its_id_engine_and_window() -> None:
    body = {"id": "tiny", "engine_url": "http://e/v1", "max_model_len": 1024, "more": 1}
    async with launcher("/v1/model", body) as client:
        model = await client.model()
    assert (model.id, model.engine_url, model.max_model_len) == ("tiny", "http://e/v1", 1024)


async def test_files_that_are_no_profile_are_refused() -> None:
    async with launcher("/v1/profile", {"ref": "x", "files": {}}) as client:
        with pytest.raises(ProfileError):
            await client.profile()


@pytest.mark.parametrize("body", [b"<html>", {"id": "x"}])
async def test_an_answer_of_another_shape_is_a_dependency_error(body: object) -> None:
    async with launcher("/v1/model", body) as client:
        with pytest.raises(DependencyError, match="answered no ServedModel"):
            await client.model()


async def test_an_engine_that_is_still_starting_is_unavailable() -> None:
    async with launcher("/readyz", b"starting", status=503) as client:
        with pytest.raises(Unavailable, match="starting"):
            await client.check()
