"""The settings that name the gateway's peers refuse what no client could call, before the process serves."""

import pytest
from pydantic import ValidationError

from gateway.settings import GatewaySettings

SRV = "http+srv://_http._tcp.peers.ns.svc/v1"


@pytest.mark.parametrize("name", ["engine_url", "engine_fallback_urls", "store_url"])
def test_a_wrong_url_of_engines_and_stores_is_refused_with_every_accepted_scheme(name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        GatewaySettings.model_validate({name: "http://a/v1,peer:7803/v1"})

    [fault] = refused.value.errors()
    assert fault["loc"] == (name,)
    assert "this is not an absolute http://, https://, http+srv:// or https+srv:// URL" in fault["msg"]


@pytest.mark.parametrize("name", ["engine_url", "engine_fallback_urls", "store_url"])
def test_engines_and_stores_are_named_by_srv_records_too(name: str) -> None:
    settings = GatewaySettings.model_validate({name: f"http://a/v1,{SRV}"})
    assert settings.model_dump()[name] == f"http://a/v1,{SRV}"


@pytest.mark.parametrize("url", ["launcher:7802", SRV])
def test_the_launcher_is_one_server_at_an_http_url(url: str) -> None:
    with pytest.raises(ValidationError, match="is not an absolute http:// or https:// URL"):
        GatewaySettings.model_validate({"inference_url": url})
