"""The smoke test's chat on an endpoint that refuses what vLLM takes."""

import asyncio
from dataclasses import replace
from typing import Final

from pydantic import SecretStr

from deploy.smoke import Stack, chat_as
from gateway.settings import GatewaySettings
from tests.fakes.strict_endpoint import strict_endpoint
from tests.fakes.strict_specs import SPECS
from tests.gateway.running import running_gateway

_LIKE_OPENAI: Final = replace(next(spec for spec in SPECS if spec.certain and spec.fields is not None), base="/v1")


async def test_a_chat_is_repeated_without_the_fields_that_the_endpoint_refuses(settings: GatewaySettings) -> None:
    async with strict_endpoint(_LIKE_OPENAI) as endpoint:
        key = SecretStr(endpoint.spec.headers["Authorization"].removeprefix("Bearer "))
        of_endpoint = {"engine_url": endpoint.url, "engine_api_key": key, "model": endpoint.spec.model}
        async with running_gateway(settings.model_copy(update=of_endpoint)) as gateway:
            stack = Stack(gateway.url, key="", user="ada", timeout_s=60)
            answer = await asyncio.to_thread(chat_as, stack, "Which boat?", {"mode": "off"})
    assert "red boat" in str(answer["choices"])
    assert [sorted(asked) for asked in endpoint.asked][-1] == ["messages", "model"]
    assert len(endpoint.refusals) == 1
