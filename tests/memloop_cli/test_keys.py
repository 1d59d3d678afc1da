"""``memloop keys`` against a real gateway."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from typer.testing import CliRunner, Result

from memloop_cli.main import app
from tests.gateway.api_rig import ALICE_KEY, OPERATED, OPERATOR_KEY, Api, api
from tests.gateway.long_reads import reader
from tests.memloop_cli.conftest import lines


@pytest.fixture
async def it(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Api]:
    async with api(redis_url, reader, api_keys=OPERATED) as running:
        monkeypatch.setenv("MEMLOOP_URL", running.gateway.url)
        monkeypatch.setenv("MEMLOOP_API_KEY", OPERATOR_KEY)
        yield running


async def keys(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, ["keys", *arguments])


async def status_with(it: Api, secret: str) -> int:
    return (await it.get("/v1/models", **{"X-API-Key": secret})).status


async def test_a_key_is_made_listed_rotated_and_revoked(it: Api) -> None:
    made = await keys("create", "app", "--tenant", "a", "--scopes", "chat+memory:read", "--expires", "2999-01-01")
    secret = lines(made)[-1]
    key_id = lines(made)[0].split()[0]
    assert await status_with(it, secret) == 200

    (listed,) = lines(await keys("list", "--tenant", "a"))
    assert listed.startswith(f"{key_id}  a  {secret[:10]}…  app  [chat+memory:read]")
    assert "until 2999-01-01" in listed
    assert secret not in listed

    rotated = await keys("rotate", key_id, "--overlap", "1h")
    assert [await status_with(it, known) for known in (secret, lines(rotated)[-1])] == [200, 200]

    assert "is revoked" in (await keys("revoke", key_id)).output
    assert [await status_with(it, known) for known in (secret, lines(rotated)[-1])] == [401, 401]
    assert "no keys" in (await keys("list", "--tenant", "a")).output


async def test_an_invalid_value_prints_one_line(it: Api) -> None:
    del it
    for arguments, said in (
        (["create", "x", "--scopes", "root"], "--scopes takes"),
        (["create", "x", "--expires", "soon"], "--expires takes"),
        (["create", "x", "--scopes", ""], "--scopes takes"),
        (["create", "x", "--expires", ""], "--expires takes"),
        (["create", "x", "--tenant", ""], "tenant"),
        (["create", "x", "--tenant", "a/b"], "tenant"),
        (["create", ""], "name"),
        (["rotate", "key_1", "--overlap", "a while"], "--overlap takes"),
        (["revoke", "key_1"], "Key 'key_1' not found"),
        (["list", "--api-key", ALICE_KEY], "Missing scopes: admin."),
    ):
        result = await keys(*arguments)
        assert (result.exit_code, said in result.output, "Traceback" in result.output) == (2, True, False), arguments
