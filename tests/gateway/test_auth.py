"""API keys: which are accepted, whose tenant they name, and that none are needed only on the loopback."""

import hashlib
from pathlib import Path

import pytest
from redis.asyncio import Redis

from gateway.access.access import KeyFileError, load_static_keys
from gateway.access.key_records import KeyRecords
from gateway.access.keys import LOCAL, KeyRing, Principal
from gateway.main import main
from gateway.settings import GatewaySettings
from memloop.wire.errors import Forbidden, Unauthenticated
from memloop.wire.keys import ALL_SCOPES
from tests.gateway.running import CHAT, question, running_gateway


def _entry(tenant: str, key: str) -> str:
    return f"{tenant}:{hashlib.sha256(key.encode()).hexdigest()}"


def _ring(keys: str) -> KeyRing:
    return _loaded(api_keys=keys)


def _loaded(**settings: object) -> KeyRing:
    """A ring whose Redis nobody asks, for no key was made."""
    ring = KeyRing(
        load_static_keys(GatewaySettings.model_validate(settings)), KeyRecords(Redis()), wait_s=1.0, stale_s=60.0
    )
    ring.reset([])
    return ring


RING = _ring(f"{_entry('acme', 'key-a')}, {_entry('umbrella', 'key-b')}")


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer key-b"},
        {"authorization": "bearer key-b"},
        {"authorization": "Token key-b"},
        {"x-api-key": "key-b"},
    ],
    ids=["Bearer", "bearer", "Token", "X-API-Key"],
)
def test_key_names_its_tenant(headers: dict[str, str]) -> None:
    assert RING.authenticate(headers).tenant == "umbrella"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer key-c"},
        {"authorization": "Basic key-a"},
        {"authorization": "key-a"},
        {"authorization": "Bearer "},
        {"x-api-key": ""},
        {"authorization": "Bearer wrong", "x-api-key": "key-a"},
        {"x-api-key": hashlib.sha256(b"key-a").hexdigest()},
        {"x-api-key": "k\udce9y"},
    ],
    ids=["none", "unknown", "Basic", "bare", "empty", "empty X-API-Key", "wrong beside right", "the hash", "not UTF-8"],
)
def test_caller_without_a_known_key_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Unauthenticated):
        RING.authenticate(headers)


def test_without_keys_everybody_is_the_local_tenant_and_may_do_all() -> None:
    assert _ring("").authenticate({}) == LOCAL
    assert LOCAL.scopes == ALL_SCOPES


def _caller(options: str) -> Principal:
    return _ring(f"{_entry('acme', 'key-a')} {options}").authenticate({"x-api-key": "key-a"})


def test_a_key_for_which_no_scopes_are_named_may_do_all_but_manage_keys() -> None:
    caller = _caller("")
    assert caller.scopes == ALL_SCOPES - {"admin"}
    assert not caller.is_operator


def test_a_key_has_the_scopes_that_its_entry_names() -> None:
    caller = _caller("scopes=chat+memory:read")
    assert caller.scopes == {"chat", "memory:read"}
    with pytest.raises(Forbidden, match=r"Missing scopes: memory:write, admin\."):
        caller.require("chat", "memory:write", "admin")


def test_a_configured_key_with_the_scope_admin_is_the_operators() -> None:
    assert _caller("scopes=admin").is_operator


def test_an_expired_key_is_refused() -> None:
    with pytest.raises(Unauthenticated, match="expired"):
        _caller("scopes=chat expires=2026-01-01")
    assert _caller("expires=2999-01-01T00:00:00Z").tenant == "acme"


def test_keys_come_from_a_file_with_comments(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# ours\n\n{_entry('acme', 'key-a')}  # since May\n")
    ring = _loaded(api_keys_file=file)
    assert ring.authenticate({"x-api-key": "key-a"}).tenant == "acme"


@pytest.mark.parametrize(
    "text",
    [
        "acme:key-a",
        "acme",
        ":" + "0" * 64,
        "a/b:" + "0" * 64,
        f"acme:{'0' * 64} scopes=chat+root",
        f"acme:{'0' * 64} scopes=",
        f"acme:{'0' * 64} expires=soon",
        f"acme:{'0' * 64} scope=chat",
    ],
    ids=repr,
)
def test_entry_that_is_no_hash_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(KeyFileError, match="entry 1 of the API keys") as caught:
        _ring(text)
    assert text not in str(caught.value)


async def test_request_without_a_key_is_refused_before_its_body_is_read(settings: GatewaySettings) -> None:
    keyed = GatewaySettings.model_validate({**settings.model_dump(), "api_keys": _entry("acme", "key-a")})
    async with running_gateway(keyed) as gateway:
        refused = await gateway.post(CHAT, b"{")
        accepted = await gateway.post(CHAT, question(), headers={"X-API-Key": "key-a"})
        health = await gateway.get("/livez")
    assert (refused.status, refused.error["code"]) == (401, "invalid_api_key")
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert (accepted.status, health.status) == (200, 200)


def test_process_without_keys_refuses_to_listen_beyond_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_HOST", "0.0.0.0")
    with pytest.raises(SystemExit, match="no keys are configured"):
        main()
