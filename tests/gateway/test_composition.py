"""How a process finds out which model, profile and tokenizer it works with."""

from contextlib import AbstractAsyncContextManager

import pytest

from gateway.engine import Backend, open_backend, read_models
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.profiles import ProfileError, load_profile
from memloop_service import new_registry
from tests.fakes.launcher import Launcher, launched


def opened(settings: GatewaySettings) -> AbstractAsyncContextManager[Backend]:
    return open_backend(read_models(settings), settings, Metrics(new_registry()))


async def test_inference_gives_model_profile_and_tokenizer(settings: GatewaySettings) -> None:
    async with launched(Launcher()) as url:
        asking = settings.model_copy(update={"inference_url": url})
        async with opened(asking) as backend:
            assert backend.models.chat.id == "served"
            assert backend.models.chat.window.profile.ref == load_profile("tiny").ref
            assert backend.models.chat.splitter.count("one two three four") == 4


async def test_settings_win_over_inference(settings: GatewaySettings) -> None:
    async with launched(Launcher()) as url:
        told = settings.model_copy(update={"inference_url": url, "model": "mine", "profile": "default"})
        async with opened(told) as backend:
            assert (backend.models.chat.id, backend.models.chat.window.profile.name) == ("mine", "default")
            assert isinstance(backend.models.chat.splitter, TokenizerSplitter)


async def test_a_profile_that_does_not_fit_the_served_window_is_refused(settings: GatewaySettings) -> None:
    async with launched(Launcher(window_tokens=512)) as url:
        told = settings.model_copy(update={"inference_url": url, "profile": "default"})
        with pytest.raises(ProfileError, match=r"the prompt memory needs .* and the window has 512"):
            async with opened(told):
                pass


async def test_without_inference_the_engine_names_the_model_and_the_rest_is_safe(settings: GatewaySettings) -> None:
    async with opened(settings) as backend:
        assert backend.models.chat.id == "fake-model"
        assert backend.models.chat.window.profile.name == "default"
        assert isinstance(backend.models.chat.splitter, EstimatingSplitter)


async def test_profile_that_is_not_there_is_an_error_at_the_start(settings: GatewaySettings) -> None:
    with pytest.raises(ProfileError):
        async with opened(settings.model_copy(update={"profile": "none"})):
            pass


def test_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MODEL", "PROFILE", "TOKENIZER", "STORE_KEY", "ENGINE_API_KEY", "INFERENCE_URL", "API_KEYS_FILE"):
        monkeypatch.setenv(f"MEMLOOP_{name}", "")
    settings = GatewaySettings()
    assert (settings.tokenizer, settings.profile, settings.engine_api_key, settings.api_keys_file) == (None,) * 4
