"""Webhooks: which URLs are taken, which addresses are reached, whose secret signs."""

import asyncio
import base64
import socket
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from standardwebhooks import Webhook, WebhookVerificationError

from gateway.addresses import AddressRefused, AddressRules, Lookup, system_lookup
from gateway.addresses.resolving import CheckedResolver
from gateway.settings import GatewaySettings, networks_of
from gateway.webhooks.webhooks import WebhookRules, WebhookSecrets
from memloop.wire.errors import NotSupported, Unprocessable

OLD, NEW = (f"whsec_{base64.b64encode(bytes([number] * 32)).decode()}" for number in (1, 2))

REFUSED = {
    "loopback": "127.0.0.1",
    "all of loopback": "127.9.9.9",
    "this host": "0.0.0.0",
    "private, class A": "10.0.0.1",
    "private, class B": "172.16.0.1",
    "private, class C": "192.168.1.1",
    "link-local, where clouds keep their credentials": "169.254.169.254",
    "carrier-grade NAT": "100.64.0.1",
    "protocol assignments": "192.0.0.1",
    "documentation": "192.0.2.1",
    "6to4 relays": "192.88.99.1",
    "benchmarks": "198.18.0.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "IPv6 loopback": "::1",
    "IPv6 unspecified": "::",
    "IPv6 link-local": "fe80::1",
    "IPv6 link-local with a zone": "fe80::1%eth0",
    "IPv6 unique local": "fd00::1",
    "IPv6 site-local": "fec0::1",
    "IPv6 multicast": "ff02::1",
    "IPv6 documentation": "2001:db8::1",
    "IPv6 new documentation": "3fff::1",
    "Teredo": "2001:0:7f00:1::1",
    "6to4 of loopback": "2002:7f00:1::",
    "NAT64 of loopback": "64:ff9b::7f00:1",
    "IPv4-mapped loopback": "::ffff:127.0.0.1",
    "IPv4-mapped public": "::ffff:8.8.8.8",
    "IPv4-compatible loopback": "::7f00:1",
}


NAMES: dict[str, Sequence[str]] = {
    "hooks.example": ["93.184.215.14"],
    "localtest.me": ["127.0.0.1"],
    "lvh.me": ["::1"],
    "10.0.0.1.nip.io": ["10.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "two.example": ["93.184.215.14", "192.168.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
}
"""What a resolver of tests knows."""


async def resolved(host: str, port: int) -> Sequence[str]:
    """Resolve a name of ``NAMES``; a resolver has no others."""
    del port
    if host.rstrip(".") not in NAMES:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return NAMES[host.rstrip(".")]


def _rules(
    *, networks: str = "", allow_http: bool = False, secret: str = NEW, lookup: Lookup = resolved
) -> WebhookRules:
    return WebhookRules(WebhookSecrets.parse(secret), AddressRules(networks_of(networks)), allow_http, lookup)


@pytest.mark.parametrize("address", REFUSED.values(), ids=REFUSED)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused):
        AddressRules().check(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "100.128.0.1", "172.32.0.1", "2606:4700:4700::1111"])
def test_a_public_address_is_let_through(address: str) -> None:
    AddressRules().check(address)


def test_the_operators_networks_are_let_through_and_nothing_beside_them() -> None:
    rules = AddressRules(networks_of("10.1.0.0/16, fd00::/64"))
    rules.check("10.1.2.3")
    rules.check("fd00::5")
    for address in ("10.2.0.1", "fd01::1", "::ffff:10.1.2.3", "127.0.0.1"):
        with pytest.raises(AddressRefused):
            rules.check(address)


@pytest.mark.parametrize("found", [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["8.8.8.8", "::1"]])
async def test_a_name_with_one_address_that_is_not_public_is_refused(found: list[str]) -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return found

    with pytest.raises(AddressRefused):
        await CheckedResolver(AddressRules(), lookup).resolve("example.test", 443)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/in",
        "https://127.0.0.1/in",
        "https://[::1]/in",
        "https://[::ffff:10.0.0.1]/in",
        "https://169.254.169.254/latest/meta-data",
        "https://user:secret@hooks.example/in",
        "https:///in",
        "https://hooks.example:99999/in",
        "https://127.1/",
        "https://127.0.1/",
        "https://127.1./",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://017700000001/",
        "https://0177.0.0.01/",
        "https://0/",
        "https://0.0.0.0/",
        "https://10.1/",
        "https://3232235521/",
        "https://0xa9fea9fe/",
        "https://127.0.0.1./",
        "https://\uff11\uff12\uff17.0.0.1/",
        "https://127\u3002\u0030\u3002\u0030\u30021/",
        "https://[::]/",
        "https://[::ffff:7f00:1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[fe80::1%25eth0]/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://a.localhost/",
        *(f"https://{name}/in" for name in NAMES if name != "hooks.example"),
        "https://LocalTest.me/",
        "https://localtest.me./",
    ],
)
async def test_a_url_that_can_never_be_delivered_to_is_refused_at_once(url: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        await _rules().check_url(url)
    assert refused.value.param == "webhook.url"


async def test_a_url_of_a_public_host_is_taken_and_plain_http_where_the_operator_allows_it() -> None:
    await _rules().check_url("https://hooks.example:8443/in?token=1")
    await _rules().check_url("https://8.8.8.8/in")
    local = _rules(allow_http=True, networks="127.0.0.1")
    for url in ("http://127.0.0.1:9/in", "http://127.1/in", "http://localhost:9/in", "http://localtest.me/in"):
        await local.check_url(url)


async def test_a_name_that_does_not_resolve_is_taken_since_each_delivery_checks_it_again() -> None:
    await _rules().check_url("https://not-yet.example/in")


async def test_a_name_that_resolves_slowly_is_not_waited_for() -> None:
    async def slow(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return [host, str(port)]

    await _rules(lookup=slow).check_url("https://slow.example/in")


@pytest.mark.parametrize("name", ["localhost", "127.1", "0x7f.1", "2130706433", "017700000001", "0"])
async def test_the_systems_resolver_finds_this_machine_behind_its_other_names(name: str) -> None:
    with pytest.raises(AddressRefused):
        await CheckedResolver(AddressRules(), system_lookup).resolve(name, 443)


async def test_without_a_secret_webhooks_are_not_served() -> None:
    with pytest.raises(NotSupported, match="MEMLOOP_WEBHOOK_SECRET"):
        await _rules(secret="").check_url("https://hooks.example/in")


def test_a_tenants_secret_verifies_its_own_messages_only() -> None:
    secrets = WebhookSecrets.parse(NEW)
    assert secrets is not None
    at, body = datetime.now(UTC), '{"type":"long_read.completed"}'
    signed = secrets.signatures("a", message_id="msg_1", at=at, body=body)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signed}
    assert Webhook(secrets.of("a")).verify(body, headers) == {"type": "long_read.completed"}
    for other in (secrets.of("b"), NEW):
        with pytest.raises(WebhookVerificationError):
            Webhook(other).verify(body, headers)


def test_while_the_secret_is_changed_receivers_with_either_one_can_verify() -> None:
    both, old = WebhookSecrets.parse(f"{NEW},{OLD}"), WebhookSecrets.parse(OLD)
    assert both is not None
    assert old is not None
    at = datetime.now(UTC)
    signed = both.signatures("a", message_id="msg_1", at=at, body="{}")
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signed}
    assert both.of("a") != old.of("a")
    for secrets in (both, old):
        assert Webhook(secrets.of("a")).verify("{}", headers) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook_secret": "secret"},
        {"webhook_secret": "whsec_c2hvcnQ="},
        {"webhook_secret": "whsec_?"},
        {"webhook_allow_networks": "10.0.0.1/8"},
        {"webhook_allow_networks": "hooks.example"},
    ],
)
def test_a_wrong_setting_is_refused_at_the_start(changes: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        GatewaySettings.model_validate(changes)
