"""Requests to vLLM on CPUs lose their seed, and nothing else."""

import json

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from inference.engines.seedless import Seedless


async def echo(request: Request) -> Response:
    return Response(await request.body())


CLIENT = TestClient(
    Starlette(routes=[Route("/", echo, methods=["GET", "POST"])], middleware=[Middleware(Seedless)]),
)


def test_a_seed_is_taken_out() -> None:
    body = {"prompt": 'the "seed" of é', "seed": 7, "n": 1e300}
    answer = CLIENT.post("/", content=json.dumps(body))
    assert answer.json() == {"prompt": body["prompt"], "n": 1e300}


@pytest.mark.parametrize("body", [b'{"\\u0073eed": 1}', '{"seed": 1}'.encode("utf-16"), b'{"seed": 1, "seed": 2}'])
def test_no_way_to_write_a_seed_passes(body: bytes) -> None:
    assert CLIENT.post("/", content=body).json() == {}


@pytest.mark.parametrize(
    "body",
    [b"", b'{"a": "seed"}', b'{"seed": ', b'["seed"]', b'{"b": {"seed": 1}}', b'"seed"' + b"\xff", b"x" * 200_000],
)
def test_what_has_no_seed_stays_as_it_is(body: bytes) -> None:
    assert CLIENT.post("/", content=body).content == body


def test_a_body_in_pieces_is_read_whole() -> None:
    pieces = [b'{"se', b'ed": 1, "prompt": ', b'"x"}']
    assert CLIENT.post("/", content=iter(pieces)).json() == {"prompt": "x"}
