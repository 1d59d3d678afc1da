import json
import logging
from collections.abc import AsyncGenerator

import pytest

from memloop.wire.errors import MemloopError
from memloop_service import ServiceSettings, refuse_open_listen
from memloop_service.logs import JsonLines
from tests.memloop_service.small_service import client_of, get, post, problem


@pytest.mark.parametrize(
    ("path", "status", "kind", "code"),
    [
        ("/nowhere", 404, "not_found_error", "not_found"),
        ("/fail/conflict", 409, "conflict_error", "stale"),
        ("/fail/limited", 429, "rate_limit_error", "rate_limited"),
        ("/fail/stranger", 401, "authentication_error", "invalid_api_key"),
        ("/fail/bug", 500, "api_error", "internal_error"),
        ("/fail/group", 503, "upstream_error", "unavailable"),
        ("/fail/groups", 500, "api_error", "internal_error"),
        ("/fail/teapot", 418, "invalid_request_error", "invalid_request"),
        ("/things", 405, "invalid_request_error", "method_not_allowed"),
    ],
)
async def test_every_failure_has_openais_shape_and_an_id(path: str, status: int, kind: str, code: str) -> None:
    response = await get(path)
    error = problem(response)
    assert (response.status_code, error["type"], error["code"]) == (status, kind, code)
    assert response.headers["x-request-id"].startswith("req_")
    assert int(response.headers["openai-processing-ms"]) >= 0


async def test_a_bug_is_logged_with_its_cause_and_answered_without(caplog: pytest.LogCaptureFixture) -> None:
    response = await get("/fail/bug")
    assert "secret" not in response.text
    assert any(record.exc_info and "secret" in str(record.exc_info[1]) for record in caplog.records)


async def test_headers_go_with_their_status() -> None:
    assert (await get("/fail/limited")).headers["retry-after"] == "2"
    assert (await get("/fail/stranger")).headers["www-authenticate"] == "Bearer"
    assert (await get("/things")).headers["allow"] == "POST, PUT"


async def test_the_methods_of_a_path_are_those_of_the_path_without_parameters() -> None:
    async with client_of() as client:
        assert (await client.delete("/fail/loudly")).headers["allow"] == "POST"
        assert (await client.delete("/fail/quietly")).headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b'{"name": "x", "cou', 400, "invalid_json", None),
        (b"", 422, "validation_error", None),
        (b"\xff\xfe", 400, "invalid_json", None),
        (b"[" * 900, 400, "invalid_json", None),
        (b"[]", 422, "validation_error", None),
        (b"{}", 422, "validation_error", "name"),
        (b'{"name": "x", "count": "many"}', 422, "validation_error", "count"),
        (b'{"name": "x", "color": 1}', 400, "unknown_parameter", "color"),
        (b'{"name": "x", "\\ud800": 1}', 422, "invalid_json", None),
    ],
    ids=["cut", "empty", "no-utf8", "deep", "array", "missing", "wrong-type", "unknown", "surrogate-key"],
)
async def test_bad_bodies_name_the_fault_and_the_field(body: bytes, status: int, code: str, param: str | None) -> None:
    response = await post("/things", body)
    error = problem(response)
    assert (response.status_code, error["code"], error["param"]) == (status, code, param)


@pytest.mark.parametrize(
    ("escaped", "name"),
    [(rb"a\u0000b", "a\0b"), (rb"\ud83d\ude00", "\U0001f600"), (rb"\\ud800", r"\ud800")],
)
async def test_nul_in_a_body_is_data(escaped: bytes, name: str) -> None:
    assert (await post("/things", b'{"name": "%s"}' % escaped)).json()["name"] == name


@pytest.mark.parametrize("escaped", [rb"\ud800", rb"\uDFFF\ud800", rb"\u00e9\uD83D", rb"\\\ud800"])
async def test_half_of_a_surrogate_pair_is_refused(escaped: bytes) -> None:
    response = await post("/things", b'{"name": "%s"}' % escaped)
    assert (response.status_code, problem(response)["code"]) == (422, "invalid_json")


async def test_a_json_body_in_pieces_is_put_together() -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        for piece in (b'{"name": "\\u', b"00", b'e9"}'):
            yield piece

    assert (await post("/things", pieces())).json()["name"] == "é"


async def test_a_fault_deep_in_a_body_names_its_path() -> None:
    body = b'{"model": "m", "question": "", "document": {"text": "x"}}'
    assert problem(await post("/reads", body))["param"] == "question"
    body = b'{"model": "m", "question": "q", "document": {"text": "x", "file_id": "y"}}'
    assert problem(await post("/reads", body))["param"] == "document"


async def endless() -> AsyncGenerator[bytes]:
    for _ in range(100):
        yield b"x" * 100


@pytest.mark.parametrize("path", ["/things", "/raw"])
async def test_a_body_over_the_limit_is_refused_announced_or_not(path: str) -> None:
    for body in (b"x" * 1001, endless()):
        response = await post(path, body)
        assert response.status_code == 413
        assert problem(response)["code"] == "too_large"


async def test_a_body_at_the_limit_is_read() -> None:
    assert (await post("/raw", b"x" * 1000)).json() == 1000


@pytest.mark.parametrize("path", ["/things", "/things/"])
async def test_routes_answer_with_and_without_a_slash(path: str) -> None:
    response = await post(path, b'{"name": "x"}')
    assert (response.status_code, response.json()) == (200, {"name": "x", "count": 1})


async def test_the_clients_request_id_is_echoed_beside_ours() -> None:
    response = await get("/livez", None, **{"X-Client-Request-Id": "mine"})
    assert response.headers["x-client-request-id"] == "mine"
    assert response.headers["x-request-id"] != "mine"


@pytest.mark.parametrize("given", ["x" * 513, "tab\there"])
async def test_a_client_id_that_is_no_id_is_dropped(given: str) -> None:
    assert "x-client-request-id" not in (await get("/livez", None, **{"X-Client-Request-Id": given})).headers


async def test_the_request_id_reaches_streams_and_logs() -> None:
    response = await get("/stream")
    assert response.text == response.headers["x-request-id"]


async def test_the_api_description_has_our_error_shape_only() -> None:
    description = (await get("/openapi.json")).json()
    assert "ErrorEnvelope" in description["components"]["schemas"]
    assert "HTTPValidationError" not in description["components"]["schemas"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.0.1"])
def test_without_keys_loopback_may_listen(host: str) -> None:
    refuse_open_listen(host, has_keys=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_without_keys_the_network_may_not(host: str) -> None:
    refuse_open_listen(host, has_keys=True)
    with pytest.raises(SystemExit, match="no keys"):
        refuse_open_listen(host, has_keys=False)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_PORT", "7999")
    monkeypatch.setenv("MEMLOOP_LOG_LEVEL", "debug")
    assert (ServiceSettings().port, ServiceSettings().log_level) == (7999, "debug")


def test_a_log_line_is_one_json_object_with_the_error() -> None:
    try:
        raise MemloopError("broken\nthing \ud800")
    except MemloopError as error:
        record = logging.LogRecord(
            "x.y", logging.WARNING, __file__, 1, "it %s", ("is\nso",), (type(error), error, None)
        )
    line = JsonLines("gateway").format(record)
    fields = json.loads(line)
    assert "\n" not in line
    assert (fields["level"], fields["service"], fields["message"]) == ("warning", "gateway", "it is\nso")
    assert "broken" in fields["error"]
