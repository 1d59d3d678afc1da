"""Export and import through the gateway, on the real store."""

import json
from pathlib import Path

import pytest

from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.tenants import two_tenants


async def test_an_export_is_imported_line_by_line(redis_url: str, tmp_path: Path) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        for number in range(230):
            said = {"messages": [{"role": "user", "content": f"fact {number}"}], "user_id": "carol"}
            assert (await world.call(ALICE_KEY, "POST", "/v1/memory/batch", {"adds": [said]})).status == 200
        asked = {"user_id": "carol", "include_raw": True}

        exported = await world.call(ALICE_KEY, "POST", "/v1/memory/export", asked)

        assert (exported.status, exported.headers["content-type"]) == (200, "application/jsonl")
        *lines, last = exported.raw.splitlines()
        assert (len(lines), json.loads(last)) == (230, {"exported": 230})
        sent = b"\n".join([*lines[:100], b"nonsense", b"", *lines[100:], last])
        headers = {"Authorization": f"Bearer {BOB_KEY}", "Content-Type": "application/jsonl"}
        answers = [await world.gateway.post("/v1/memory/import", sent, headers=headers) for _ in range(2)]
        assert [answer.json["imported"] for answer in answers] == [230, 0]
        assert [answer.json["unchanged"] for answer in answers] == [0, 230]
        assert [error["line"] for error in answers[0].json["errors"]] == [101]
        found = await world.call(BOB_KEY, "POST", "/v1/memory/export", asked)
        assert len(found.raw.splitlines()) == 231


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
async def test_a_file_is_imported_as_other_programs_write_it(redis_url: str, tmp_path: Path, encoding: str) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        said = {"messages": [{"role": "user", "content": "I drink tea – crème brûlée."}], "user_id": "carol"}
        await world.call(ALICE_KEY, "POST", "/v1/memory/batch", {"adds": [said]})
        exported = await world.call(ALICE_KEY, "POST", "/v1/memory/export", {"user_id": "carol", "include_raw": True})
        headers = {"Authorization": f"Bearer {BOB_KEY}", "Content-Type": "application/jsonl"}

        answer = await world.gateway.post(
            "/v1/memory/import", exported.raw.decode().replace("\n", "\r\n").encode(encoding), headers=headers
        )

        assert (answer.json["imported"], answer.json["errors"]) == (1, [])
        found = await world.call(BOB_KEY, "POST", "/v1/memory/export", {"user_id": "carol", "include_raw": True})
        assert "crème brûlée" in found.raw.decode()


async def test_a_file_without_a_memory_is_refused_line_by_line(redis_url: str, tmp_path: Path) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        headers = {"Authorization": f"Bearer {BOB_KEY}", "Content-Type": "application/jsonl"}

        answer = await world.gateway.post("/v1/memory/import", b"[0]\nnull", headers=headers)

        assert (answer.status, answer.json["imported"], answer.json["failed"]) == (200, 0, 2)


@pytest.mark.parametrize("before", [0, 3])
async def test_a_line_without_end_is_refused_by_its_number(redis_url: str, tmp_path: Path, before: int) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        headers = {"Authorization": f"Bearer {BOB_KEY}", "Content-Type": "application/jsonl"}
        endless = b"{}\n" * before + b"x" * (2 * 1024 * 1024)

        answer = await world.gateway.post("/v1/memory/import", endless, headers=headers)

        assert (answer.status, answer.json["error"]["code"]) == (413, "line_too_long")
        assert f"line {before + 1} " in answer.json["error"]["message"]
