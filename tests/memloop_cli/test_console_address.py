"""The address of the console is printed only where the gateway serves one."""

import pytest
from fastapi import FastAPI, Response

from memloop_cli.stack.component import console_address
from tests.fakes.asgi_server import running


@pytest.mark.parametrize(("status", "is_there"), [(200, True), (503, False), (404, False)])
async def test_a_console_that_opens_has_an_address(status: int, is_there: bool) -> None:
    app = FastAPI()
    app.add_api_route("/console/", lambda: Response("page", status_code=status))
    async with running(app) as url:
        assert await console_address(url) == (f"{url}/console/" if is_there else None)


async def test_without_a_gateway_there_is_none() -> None:
    assert await console_address("http://127.0.0.1:9") is None
