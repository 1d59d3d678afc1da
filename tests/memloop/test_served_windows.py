"""The window of a model, as each kind of endpoint states it in its public API document."""

import logging

import pytest

from memloop_clients import EngineClient, ServedWindow
from tests.fakes.windowed_engine import MODEL, States, WindowedEngine, windowed_engine


async def window_of(engine: WindowedEngine, model: str = MODEL) -> ServedWindow | None:
    async with windowed_engine(engine), EngineClient(engine.url, model=model) as client:
        return await client.window(model)


@pytest.mark.parametrize("tokens", [2048, 4096, 8192, 131_072])
@pytest.mark.parametrize("states", ["ollama", "llama.cpp", "lmstudio", "vllm", "openrouter"])
async def test_each_kind_of_endpoint_states_its_window(states: States, tokens: int) -> None:
    found = await window_of(WindowedEngine(tokens, states=states))
    assert found is not None
    assert found.tokens == min(tokens, 32_768) if states == "openrouter" else found.tokens == tokens
    assert not found.assumed


async def test_an_endpoint_that_states_nothing_has_no_window() -> None:
    assert await window_of(WindowedEngine(4096)) == ServedWindow(None, "/models")


async def test_an_endpoint_that_is_down_may_be_asked_again() -> None:
    async with EngineClient("http://127.0.0.1:9/v1", model=MODEL) as client:
        assert await client.window(MODEL) is None


async def test_ollama_has_its_default_window_until_the_model_is_loaded() -> None:
    engine = WindowedEngine(16_384, states="ollama", loaded=False)
    async with windowed_engine(engine), EngineClient(engine.url, model=MODEL) as client:
        first = await client.window(MODEL)
        engine.loaded = True
        second = await client.window(MODEL)
    assert (first and first.tokens, first and first.assumed) == (4096, True)
    assert (second and second.tokens, second and second.assumed) == (16_384, False)


async def test_num_ctx_of_ollamas_modelfile_is_the_window_of_its_openai_route() -> None:
    found = await window_of(WindowedEngine(4096, states="ollama", num_ctx=12_288, loaded=False))
    assert (found and found.tokens, found and found.assumed) == (12_288, False)


async def test_num_ctx_beyond_the_training_length_is_cut_by_ollama() -> None:
    found = await window_of(WindowedEngine(4096, states="ollama", num_ctx=1_000_000))
    assert found is not None
    assert found.tokens == 32_768


async def test_ollamas_advice_names_both_ways_to_a_larger_window() -> None:
    found = await window_of(WindowedEngine(4096, states="ollama"))
    assert found is not None
    assert "OLLAMA_CONTEXT_LENGTH=8192" in found.advice
    assert "num_ctx 8192" in found.advice


async def test_a_model_that_lm_studio_has_not_loaded_gets_its_default_window() -> None:
    found = await window_of(WindowedEngine(8192, states="lmstudio", loaded=False))
    assert (found and found.tokens, found and found.assumed) == (4096, True)


@pytest.mark.parametrize("odd", ["8192", True, 0, -1, 4.5, None, [], {"a": 1}, 10**12])
async def test_odd_values_are_no_window(odd: object, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    engine = WindowedEngine(odd, states="vllm")  # pyright: ignore[reportArgumentType] - that is the test
    assert await window_of(engine) == ServedWindow(None, "/models")
    assert not caplog.records
