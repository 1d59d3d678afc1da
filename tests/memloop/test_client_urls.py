"""Which URLs of engines, stores and launchers are accepted, and what a refusal names."""

import pytest

from memloop_clients import balanced_url, balanced_urls, plain_url, urls_in

SRV = "http+srv://_http._tcp.engines.ns.svc/v1"


@pytest.mark.parametrize("url", ["http://e:7803/v1", "https://e/v1", SRV, SRV.replace("http+", "https+")])
def test_a_balanced_service_is_named_by_an_address_or_by_srv_records(url: str) -> None:
    assert balanced_url(url) == url


@pytest.mark.parametrize("url", ["/v1", "engine:7803/v1", "127.0.0.1:7803/v1", "ftp://e/v1", "http:///v1", ""])
def test_the_refusal_names_every_accepted_scheme(url: str) -> None:
    with pytest.raises(ValueError) as refused:
        balanced_url(url)

    assert str(refused.value) == "this is not an absolute http://, https://, http+srv:// or https+srv:// URL"


def test_one_server_is_not_named_by_srv_records() -> None:
    with pytest.raises(ValueError) as refused:
        plain_url(SRV)

    assert str(refused.value) == "this is not an absolute http:// or https:// URL"


def test_one_wrong_url_of_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="this is not an absolute http://"):
        balanced_urls("http://engine-a:7803/v1, engine-b:7803/v1")


def test_a_list_of_urls_has_commas_between_them_and_nothing_empty() -> None:
    assert urls_in(f"http://a/v1, {SRV},,") == ("http://a/v1", SRV)
