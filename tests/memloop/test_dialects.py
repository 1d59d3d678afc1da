"""Which kind of endpoint a URL is, and what each kind is sent."""

import pytest

from memloop.wire.chat import Json
from memloop_clients.dialects import Dialect
from memloop_clients.endpoints import ANY, DIALECT_NAMES, ENDPOINTS, DialectName, endpoint_at

BODY: Json = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x", "reasoning_content": "why"}],
    "temperature": 0.2,
    "top_p": 0.95,
    "max_tokens": 100,
    "chat_template_kwargs": {"enable_thinking": False},
}
TOOLS = [{"type": "function"}]
AZURE = "https://x.openai.azure.com/openai"


def fitted(name: str, model: str = "m", **more: object) -> Json:
    return ENDPOINTS[name].dialect_of(model).fit({**BODY, **more})  # pyright: ignore[reportArgumentType] - test values


def test_every_setting_but_auto_has_its_row() -> None:
    assert set(DIALECT_NAMES) == {"auto", *ENDPOINTS}
    assert all(endpoint.dialect.name == name for name, endpoint in ENDPOINTS.items())


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://x.openai.azure.com/openai/v1", "azure"),
        ("https://models.example.org/openai/deployments/gpt-4o", "azure"),
        ("https://x.services.ai.azure.com/openai/v1", "azure"),
        ("https://api.anthropic.com/v1", "anthropic"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini"),
        ("https://openrouter.ai/api/v1", "openrouter"),
    ],
)
def test_a_public_host_is_recognised(url: str, name: str) -> None:
    assert endpoint_at(url) is ENDPOINTS[name]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "https://notapi.openai.com.example.org/v1"])
def test_another_host_is_not_guessed(url: str) -> None:
    assert endpoint_at(url) is None


@pytest.mark.parametrize("name", ["openai", "vllm"])
def test_a_setting_wins_over_the_host(name: DialectName) -> None:
    assert endpoint_at("https://api.anthropic.com/v1", name) is ENDPOINTS[name]


def test_an_engine_gets_the_canonical_request() -> None:
    assert fitted("vllm") == fitted("sglang") == fitted("llama.cpp") == ANY.dialect.fit(BODY) == BODY


def test_openai_gets_its_own_fields() -> None:
    assert fitted("openai", chat_template_kwargs={"enable_thinking": True}, top_k=3) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}],
        "temperature": 0.2,
        "top_p": 0.95,
        "max_completion_tokens": 100,
    }


@pytest.mark.parametrize("model", ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5.6-terra"])
@pytest.mark.parametrize("name", ["openai", "azure"])
def test_a_reasoning_model_gets_no_sampling_little_effort_and_room_to_think(name: str, model: str) -> None:
    body = fitted(name, model)
    assert not {"temperature", "top_p", "max_tokens"} & body.keys()
    assert (body["reasoning_effort"], body["max_completion_tokens"]) == ("low", 4196)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "o-ring"])
def test_a_chat_model_of_openai_keeps_its_sampling(model: str) -> None:
    body = fitted("openai", model)
    assert (body["temperature"], body["max_completion_tokens"]) == (0.2, 100)
    assert "reasoning_effort" not in body


def test_effort_is_left_to_the_model_where_it_may_think() -> None:
    assert "reasoning_effort" not in fitted("openai", "o3", chat_template_kwargs={"enable_thinking": True})
    assert "reasoning_effort" not in fitted("openai", "gpt-5.4", tools=TOOLS)


def test_anthropic_gets_a_temperature_and_no_top_p() -> None:
    body = fitted("anthropic", seed=3)
    assert body["temperature"] == 0.2
    assert not {"top_p", "seed", "chat_template_kwargs"} & body.keys()


@pytest.mark.parametrize(
    ("name", "choice", "sent"),
    [
        ("openai", "required", "required"),
        ("openai", {"type": "function"}, {"type": "function"}),
        ("lmstudio", "required", "required"),
        ("lmstudio", {"type": "function"}, "required"),
    ],
)
def test_a_tool_choice_is_one_that_the_endpoint_takes(name: str, choice: object, sent: object) -> None:
    assert fitted(name, tools=TOOLS, tool_choice=choice)["tool_choice"] == sent


def test_the_key_goes_into_the_header_of_its_endpoint() -> None:
    assert ENDPOINTS["azure"].headers("k") == {"api-key": "k"}
    assert ENDPOINTS["gemini"].headers("k") == ANY.headers("k") == {"Authorization": "Bearer k"}
    assert ENDPOINTS["azure"].headers(None) == {}


@pytest.mark.parametrize(
    ("name", "base", "url"),
    [
        ("azure", f"{AZURE}/v1/", f"{AZURE}/v1/"),
        ("azure", f"{AZURE}/deployments/d", f"{AZURE}/deployments/d?api-version=2024-10-21"),
        ("azure", f"{AZURE}/deployments/d?api-version=7", f"{AZURE}/deployments/d?api-version=7"),
        ("vllm", "http://localhost/deployments/v1", "http://localhost/deployments/v1"),
    ],
)
def test_an_azure_deployment_gets_an_api_version(name: str, base: str, url: str) -> None:
    assert ENDPOINTS[name].base_url(base) == url


def test_a_refused_temperature_shows_a_reasoning_model_of_openai() -> None:
    deployed = ENDPOINTS["azure"].dialect_of("my-deployment")
    assert deployed.refusing("temperature", message="") == ENDPOINTS["azure"].dialect_of("gpt-5")


def test_a_refusal_changes_one_thing() -> None:
    dialect = Dialect("any")
    assert dialect.refusing("seed", message="").leaves_out == {"seed"}
    assert dialect.refusing("max_tokens", message="").limit_field == "max_completion_tokens"
    assert dialect.refusing("tool_choice", message="").tool_choices == {"none", "auto"}
    assert dialect.refusing("reasoning_effort", message="or set it to 'none'").tools_effort == "none"
