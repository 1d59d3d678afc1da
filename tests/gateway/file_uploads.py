"""Uploads of tests, and how they wait for what becomes of them."""

from pathlib import Path
from typing import Any

import aiohttp

from tests.gateway.rig import eventually
from tests.gateway.running import Answer, Gateway

FILES = "/v1/files"


async def sent(
    gateway: Gateway, raw: bytes, *, name: str = "a.txt", media_type: str = "text/plain", key: str = "", **fields: str
) -> Answer:
    """The answer to an upload; fields that are not given are right."""
    form = aiohttp.FormData()
    for field, value in ({"purpose": "user_data"} | fields).items():
        form.add_field(field, value)
    form.add_field("file", raw, filename=name, content_type=media_type)
    async with gateway.http.post(gateway.url + FILES, data=form, headers=_key(key)) as response:
        return Answer(response.status, response.headers, await response.read())


async def upload(gateway: Gateway, raw: bytes, *, key: str = "", **how: Any) -> Any:
    """The file that an upload made."""
    answer = await sent(gateway, raw, key=key, **how)
    assert (answer.status, answer.json["status"]) == (200, "uploaded"), answer.raw
    return answer.json


async def processed(gateway: Gateway, file_id: str, *, key: str = "") -> Any:
    """The file once its text was extracted or could not be."""
    file: Any = None

    async def over() -> bool:
        nonlocal file
        file = (await gateway.get(f"{FILES}/{file_id}", headers=_key(key))).json
        return file["status"] != "uploaded"

    await eventually(over, timeout_s=240.0)  # extraction lets all other processes go first
    return file


def _key(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def objects(folder: Path) -> list[Path]:
    """The objects in the storage."""
    return [path for path in folder.rglob("*") if path.is_file()]


def stored(folder: Path) -> list[str]:
    """The objects' names."""
    return sorted(path.name for path in objects(folder))
