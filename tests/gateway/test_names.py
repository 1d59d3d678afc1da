"""A name reaches the store as it was given, or the request is refused: two names never become one."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import orjson
import pytest
from yarl import URL

from tests.gateway.api_rig import ALICE_KEY, OPERATOR_KEY
from tests.gateway.openapi_document import DOCUMENT
from tests.gateway.running import Answer
from tests.gateway.tenant_rows.all_rows import ATTEMPTS
from tests.gateway.tenants import World

ALTERED: Final = {
    "half an emoji": "X\ud83d",
    "another half": "X\ud83c",
    "a low half": "\ude00X",
    "a replaced half": "X\ufffd",
    "NUL": "a\0b",
    "a line": "a\nb",
    "a control": "a\x85b",
    "a line separator": "a\u2028b",
    "space before": " ada",
    "space after": "ada\u00a0",
    "blank": "   ",
    "not composed": "e\u0301",
    "Angstrom": "\u212b",
}
"""Names that a parser, a header, a form or a file system would change."""
KEPT: Final = (
    "ada",
    "Jos\u00e9",
    "\U0001f469\u200d\U0001f4bb",
    "\u6f22\u5b57",
    "a b",
    "a/b",
    "*",
    "\u202eabc",
    "%ff",
    "a+b&c=d",
)
HALVES: Final = ("\ud83d", "\ud83c")
IDS: Final = ("user_id", "agent_id", "run_id")


async def _sent(world: World, method: str, path: str, body: object = None, **headers: str) -> Answer:
    """A request whose texts may hold half of a pair, as JSON and percent-encoding can."""
    key = OPERATOR_KEY if path.startswith("/v1/admin") else ALICE_KEY
    raw = None if body is None else json.dumps(body).encode()
    sent = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
    url = URL(world.gateway.url + path, encoded=True)
    async with world.gateway.http.request(method, url, data=raw, headers=sent) as response:
        return Answer(response.status, response.headers, await response.read())


def _refused(answer: Answer) -> bool:
    return answer.status == 422 and answer.json["error"]["code"] == "invalid_name"


async def _users(world: World) -> set[str]:
    listed = await world.call(ALICE_KEY, "GET", "/v1/entities/")
    return {one["name"] for one in listed.json["results"] if one["type"] == "user"}


def _queries() -> list[tuple[str, str, str]]:
    return [
        (method.upper(), path, parameter["name"])
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and parameter["name"] in IDS
    ]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", KEPT)
async def test_a_kept_name_is_the_users_own(name: str, world: World) -> None:
    said = {"user_id": name, "messages": [{"role": "user", "content": "Tea."}], "infer": False}
    assert (await _sent(world, "POST", "/v1/memory/add", said)).status == 200
    page = await _sent(world, "GET", f"/v1/memory?user_id={quote(name, safe='')}")
    assert [one["user_id"] for one in page.json["data"]] == [name]
    gone = await _sent(world, "DELETE", f"/v2/entities/user/{quote(name, safe='')}/")
    assert gone.status == 200
    assert name not in await _users(world)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ALTERED.values(), ids=ALTERED)
async def test_an_altered_name_is_refused_in_every_body(name: str, world: World) -> None:
    before = await world.what_a_owns()
    users = await _users(world)
    for route, body in _bodies(name):
        method, path = route.split()
        answer = await _sent(world, method, path, body)
        assert _refused(answer), (route, body, answer.raw)
    assert await _users(world) == users
    assert await world.what_a_owns() == before


def _bodies(name: str) -> list[tuple[str, object]]:
    said: list[object] = [{"role": "user", "content": "Tea."}]
    chat = {"model": "m", "messages": said}
    found: list[tuple[str, object]] = []
    for place in IDS:
        ids: dict[str, Any] = {"user_id": "alice", place: name}
        found += [
            ("POST /v1/memory/add", ids | {"messages": said}),
            ("POST /v1/memory/batch", {"adds": [ids | {"messages": said}]}),
            ("POST /v1/memory/search", ids | {"query": "tea"}),
            ("POST /v1/memory/export", ids),
            ("POST /v1/memory/buffers/flush", ids),
            ("POST /v1/memory/redaction/check", ids | {"texts": ["x"]}),
            ("POST /v1/long-read", {"question": "?", "document": {"text": "x"}, "save_to_memory": ids}),
            ("POST /v1/chat/completions", chat | {"memory": ids}),
            ("POST /v1/chat/completions", chat | {"metadata": ids, "memory": {}}),
            ("POST /v1/messages", chat | {"max_tokens": 9, "memory": ids}),
            ("POST /v1/responses", {"model": "m", "input": "Hi", "memory": ids}),
            ("POST /v3/memories/add/", ids | {"messages": said}),
        ]
    return [
        *(one for one in found if not one[0].endswith("/v1/messages")),
        ("POST /v1/chat/completions", chat | {"user": name, "memory": {}}),
        ("POST /v1/chat/completions", chat | {"safety_identifier": name, "memory": {}}),
        ("POST /v1/conversations", {"metadata": {"user_id": name}}),
        ("POST /v1/vector_stores", {"name": "n", "metadata": {"user_id": name}}),
        ("POST /v1/admin/keys", {"name": name}),
        ("POST /v1/admin/memory-webhooks", {"url": "https://example.com/in", "user_id": name}),
    ]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ALTERED.values(), ids=ALTERED)
async def test_an_altered_name_is_refused_in_every_query(name: str, world: World) -> None:
    before = await world.what_a_owns()
    asked = quote(name, safe="", errors="surrogatepass")
    for method, path, param in _queries():
        ids = {"user_id": "alice"} if param != "user_id" and (method, path, "user_id") in _queries() else {}
        query = "&".join(f"{one}={value}" for one, value in (ids | {param: asked}).items())
        answer = await _sent(world, method, f"{path}?{query}")
        assert _refused(answer), (method, path, param, answer.raw)
        assert answer.json["error"]["param"] == param
    assert len(_queries()) > 20
    assert await world.what_a_owns() == before


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("raw", ["%ff", "X%ed%a0%bd", "X%ED%A0%BC", "X%c3", "%c0%80", "%f4%90%80%80"])
async def test_an_address_that_is_not_utf_8_is_refused(raw: str, world: World) -> None:
    before = await world.what_a_owns()
    for method, path in (
        ("DELETE", f"/v1/memory?user_id={raw}"),
        ("GET", f"/v1/memory?user_id={raw}"),
        ("PUT", f"/v1/admin/memory-policy?user_id={raw}"),
        ("DELETE", f"/v1/memories/?user_id={raw}"),
        ("DELETE", f"/v2/entities/user/{raw}/"),
        ("GET", f"/v1/memory/{raw}"),
        ("GET", f"/v1/models/{raw}"),
    ):
        assert _refused(await _sent(world, method, path, {} if method == "PUT" else None)), (method, path)
    assert await world.what_a_owns() == before


@pytest.mark.asyncio(loop_scope="module")
async def test_a_name_that_ends_with_a_slash_is_not_the_one_without(world: World) -> None:
    for user in ("eve", "eve/"):
        said = {"user_id": user, "messages": [{"role": "user", "content": "Tea."}], "infer": False}
        assert (await _sent(world, "POST", "/v1/memory/add", said)).status == 200

    assert (await _sent(world, "DELETE", "/v2/entities/user/eve%2F/")).status == 200

    assert {"eve", "eve/"} & await _users(world) == {"eve"}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("header", ["X-Memory-User-Id", "X-Memory-Agent-Id"])
@pytest.mark.parametrize("name", ["X\ufffd", "e\u0301", "a\x85b"])
async def test_an_altered_name_in_a_header_is_refused(header: str, name: str, world: World) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "user": "alice"}
    assert _refused(await _sent(world, "POST", "/v1/chat/completions", asked, **{header: name}))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "name",
    [b"caf\xe9.txt", b"X\xed\xa0\xbd.txt", b"a\x00b.txt", "e\u0301.txt".encode(), b" a.txt", b"a.txt ", b"a\x7f.txt"],
)
async def test_an_altered_name_of_a_file_is_refused(name: bytes, world: World) -> None:
    answer = await _uploaded(world, b'filename="' + name + b'"')
    assert _refused(answer), answer.raw
    assert answer.json["error"]["param"] == "file"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('filename="caf\u00e9.txt"', "caf\u00e9.txt"),
        ("filename*=utf-8''caf%C3%A9.txt", "caf\u00e9.txt"),
        ('filename="\U0001f469\u200d\U0001f4bb.txt"', "\U0001f469\u200d\U0001f4bb.txt"),
        ('filename="100%.txt"', "100%.txt"),
    ],
)
async def test_the_name_of_a_file_is_kept(disposition: str, name: str, world: World) -> None:
    answer = await _uploaded(world, disposition.encode())
    assert (answer.status, answer.json.get("filename")) == (200, name), answer.raw
    content = await _sent(world, "GET", f"/v1/files/{answer.json['id']}/content")
    assert content.headers["content-disposition"] == f"attachment; filename*=UTF-8''{quote(name)}"
    assert (await _sent(world, "DELETE", f"/v1/files/{answer.json['id']}")).status == 200


async def _uploaded(world: World, filename: bytes) -> Answer:
    form = (
        b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; ' + filename + b"\r\n\r\nTea.\r\n--b--\r\n"
    )
    sent = {"Authorization": f"Bearer {ALICE_KEY}", "Content-Type": "multipart/form-data; boundary=b"}
    async with world.gateway.http.post(f"{world.gateway.url}/v1/files", data=form, headers=sent) as response:
        return Answer(response.status, response.headers, await response.read())


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ["X\ufffd", "a\0b", "e\u0301"])
async def test_a_line_of_an_import_with_an_altered_name_is_refused(name: str, world: World) -> None:
    exported = await _sent(world, "POST", "/v1/memory/export", {"user_id": "alice"})
    line: dict[str, Any] = orjson.loads(exported.raw.splitlines()[0])
    line["item"]["user_id"] = name
    users = await _users(world)
    headers = {"Content-Type": "application/jsonl"}
    sent = {"Authorization": f"Bearer {ALICE_KEY}", **headers}
    async with world.gateway.http.post(
        f"{world.gateway.url}/v1/memory/import", data=orjson.dumps(line) + b"\n", headers=sent
    ) as response:
        done: Mapping[str, Any] = orjson.loads(await response.read())
    assert (done["imported"], done["failed"]) == (0, 1)
    assert done["errors"][0]["message"].startswith("user_id: A name must")
    assert await _users(world) == users


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("name", "code"),
    [("X\ud83d", b"-32700"), ("a\0b", b"invalid_name"), ("e\u0301", b"invalid_name"), (" ada", b"invalid_name")],
)
async def test_an_altered_name_in_an_argument_of_a_tool_is_refused(name: str, code: bytes, world: World) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "memory_add", "arguments": {"user_id": name, "text": "Tea.", "infer": False}},
    }
    users = await _users(world)
    answer = await _sent(world, "POST", "/mcp", call, Accept="application/json, text/event-stream")
    assert code in answer.raw
    assert await _users(world) == users


@pytest.mark.asyncio(loop_scope="module")
async def test_two_keys_of_metadata_do_not_become_one(world: World) -> None:
    said = {"user_id": "alice", "messages": [{"role": "user", "content": "Tea."}], "infer": False}
    answer = await _sent(
        world, "POST", "/v1/memory/add", said | {"metadata": {"in": {f"a{half}": 1 for half in HALVES}}}
    )
    assert _refused(answer), answer.raw
    found = await _sent(
        world, "POST", "/v1/memory/search", {"user_id": "alice", "query": "x", "filters": {"run_id": "X\ud83d"}}
    )
    assert _refused(found), found.raw


def test_every_route_with_a_user_in_its_query_is_swept() -> None:
    swept = {f"{method} {path}" for method, path, _ in _queries()}
    assert {"DELETE /v1/memory", "GET /v1/memory/changes", "PUT /v1/admin/memory-policy"} <= swept
    assert swept <= ATTEMPTS.keys()
