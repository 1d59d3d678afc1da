"""The models file: what it may hold, and what a wrong one is refused with."""

import json
from pathlib import Path

import pytest

from gateway.engine.models_file import ModelsConfig, ModelsFileError, ModelSpec, read_models
from gateway.settings import GatewaySettings
from memloop.profiles import load_profile
from tests.fakes.word_tokenizer import word_tokenizer

TWO = """
[roles]
writer = "org/w"
reader = "r-1"
chat = "org/w"

[models."org/w"]
engine_url = "http://writer:7803/v1"
api_key_env = "KEY_OF_WRITER"
profile = "tiny"
owned_by = "us"
created = 1767225600

[models.r-1]
engine_url = "https://reader.example.com/v1"
engine_fallback_urls = ["https://spare.example.com/v1"]
engine_model = "deployment"
api_key_file = "keys/reader"
dialect = "azure"
inference_url = "http://reader:7802"
profile = "profiles/reading"
tokenizer = "tokenizer.json"
window_tokens = 16000
"""
CHARTS = Path(__file__).parents[1] / "deploy/chart/golden/models.toml"
COMPOSES = Path(__file__).parents[2] / "deploy/models/writer-reader.toml"
ONE = '[models.m]\nengine_url = "http://e/v1"\n'
A_ROLE = '[roles]\nwriter = "m"\nreader = "m"\nchat = "n"\n' + ONE


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_WRITER", "writers-key")
    monkeypatch.setenv("EMPTY", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a key, a profile of its own and a tokenizer."""
    for name, text in {
        "keys/reader": "readers-key\n",
        "keys/empty": "\n",
        "profiles/reading/manifest.toml": 'extends = "default"\nname = "reading"\nversion = "7"\n',
        "broken/manifest.toml": "name = ",
        "tokenizer.json": word_tokenizer(),
        "no-tokenizer.json": json.dumps({"model": 1}),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def config_of(folder: Path, text: str) -> ModelsConfig:
    file = folder / "models.toml"
    file.write_text(text)
    return read_models(GatewaySettings.model_validate({"models": file}))


def test_a_table_names_where_a_model_is_and_how_it_is_asked(folder: Path) -> None:
    writer, reader = config_of(folder, TWO).specs
    assert reader.profile is not None
    assert (reader.profile.name, reader.profile.version) == ("reading", "7")
    assert reader.splitter is not None
    assert reader.splitter.count("one two three") == 3
    assert reader == ModelSpec(
        id="r-1",
        engine_urls=("https://reader.example.com/v1", "https://spare.example.com/v1"),
        engine_model="deployment",
        api_key="readers-key",
        dialect="azure",
        inference_url="http://reader:7802",
        profile=reader.profile,
        splitter=reader.splitter,
        window_tokens=16000,
        place=f"{folder}/models.toml: [models.r-1]",
    )
    assert writer.profile is not None
    assert (writer.id, writer.api_key, writer.profile.ref) == ("org/w", "writers-key", load_profile("tiny").ref)
    assert (writer.owned_by, writer.created, writer.dialect) == ("us", 1767225600, "auto")


def test_a_key_is_not_shown(folder: Path) -> None:
    shown = repr(config_of(folder, TWO))
    assert "writers-key" not in shown
    assert "readers-key" not in shown


def test_roles_name_the_models_and_the_judge_may_stay_open(folder: Path) -> None:
    assert config_of(folder, TWO).roles == {"writer": "org/w", "reader": "r-1", "chat": "org/w"}


def test_a_lone_model_has_every_role(folder: Path) -> None:
    assert config_of(folder, ONE).roles == dict.fromkeys(("writer", "reader", "chat"), "m")


def test_without_a_file_the_other_settings_name_one_model() -> None:
    settings = GatewaySettings.model_validate(
        {
            "model": "m",
            "engine_url": "http://a/v1",
            "engine_fallback_urls": "http://b/v1",
            "engine_api_key": "k",
            "engine_dialect": "vllm",
            "inference_url": "http://i",
            "profile": "tiny",
        }
    )
    (spec,) = read_models(settings).specs
    assert (spec.id, spec.engine_urls, spec.api_key) == ("m", ("http://a/v1", "http://b/v1"), "k")
    assert (spec.dialect, spec.inference_url, spec.profile) == ("vllm", "http://i", load_profile("tiny"))
    assert read_models(settings).roles == {}


def test_a_list_of_engine_urls_names_replicas_beside_the_fallbacks(folder: Path) -> None:
    text = """
    [models.m]
    engine_url = ["http://a/v1", "http://b/v1"]
    engine_fallback_urls = ["http://spare/v1"]
    """
    (spec,) = config_of(folder, text).specs
    assert (spec.engine_urls, spec.replica_urls) == (("http://a/v1", "http://spare/v1"), ("http://b/v1",))


def test_engines_are_named_by_srv_records(folder: Path) -> None:
    url = "http+srv://_http._tcp.engines.ns.svc/v1"
    (spec,) = config_of(folder, f'[models.m]\nengine_url = "{url}"').specs
    assert spec.engine_urls == (url,)


def test_commas_in_the_engine_url_separate_replicas_and_in_the_fallbacks_the_order() -> None:
    settings = GatewaySettings.model_validate(
        {"engine_url": "http://a/v1, http://b/v1,", "engine_fallback_urls": "http://c/v1,http://d/v1"}
    )
    (spec,) = read_models(settings).specs
    assert (spec.engine_urls, spec.replica_urls) == (("http://a/v1", "http://c/v1", "http://d/v1"), ("http://b/v1",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(ONE + "colour = 1", "[models.m] colour: unknown key", id="unknown key"),
        pytest.param(ONE + "[model.n]", "[model]: unknown key", id="unknown table"),
        pytest.param("", "[models]: is missing", id="no models"),
        pytest.param("[models.m]\nengine_url = []", "[models.m] engine_url: the list of replicas is empty", id="none"),
        pytest.param('[models."o/m"]', '[models."o/m"] engine_url: is missing', id="no engine"),
        pytest.param(
            '[models.m]\nengine_url = "/v1"', "[models.m] engine_url: this is not an absolute", id="relative URL"
        ),
        pytest.param(ONE + 'inference_url = "launcher:7802"', "[models.m] inference_url: this is not", id="no scheme"),
        pytest.param(
            ONE + 'inference_url = "http+srv://_http._tcp.l/v1"',
            "[models.m] inference_url: this is not an absolute http:// or https:// URL",
            id="launcher by SRV records",
        ),
        pytest.param(
            ONE + 'engine_fallback_urls = ["x"]', "[models.m] engine_fallback_urls.0: this is not", id="fallback"
        ),
        pytest.param(ONE + "window_tokens = 0", "[models.m] window_tokens: Input should be greater", id="window of 0"),
        pytest.param(ONE + 'window_tokens = "8k"', "[models.m] window_tokens: Input should be a valid", id="window"),
        pytest.param(ONE + 'dialect = "klingon"', "[models.m] dialect: Input should be 'auto', ", id="dialect"),
        pytest.param('[models."a b"]\nengine_url = "http://e/v1"', '[models."a b"]: String should match', id="id"),
        pytest.param(ONE + ONE, "Cannot declare ('models', 'm') twice (at line 3", id="duplicate id"),
        pytest.param(ONE + "created = ", "Invalid value (at end of document)", id="no TOML"),
        pytest.param(A_ROLE, "[roles] chat: there is no model 'n', only m", id="role of an unknown model"),
        pytest.param('[roles]\nreeder = "m"\n' + ONE, "[roles] reeder: unknown key", id="unknown role"),
        pytest.param(ONE + '[models.n]\nengine_url = "http://e/v1"', "[roles] writer: name one of", id="open role"),
        pytest.param(ONE + 'profile = "none"', "[models.m] profile: no prompt profile at none", id="no built-in"),
        pytest.param(ONE + 'profile = "x/tiny"', "[models.m] profile: no prompt profile at ", id="no profile folder"),
        pytest.param(ONE + 'profile = "broken"', "[models.m] profile: manifest.toml: ", id="broken profile"),
        pytest.param(
            ONE + 'profile = "default"\ntokenizer = "tokenizer.json"\nwindow_tokens = 512',
            "[models.m] profile: the profile default@",
            id="window too small for the profile",
        ),
        pytest.param(ONE + 'tokenizer = "t.json"', "[models.m] tokenizer: [Errno 2] No such file", id="no tokenizer"),
        pytest.param(ONE + 'tokenizer = "no-tokenizer.json"', "[models.m] tokenizer: ", id="broken tokenizer"),
        pytest.param(ONE + 'api_key = "k"', "[models.m] api_key: keys do not stand in this file", id="key in the file"),
        pytest.param(
            ONE + 'api_key_env = "EMPTY"', "[models.m] api_key_env: the variable EMPTY holds no key", id="empty key"
        ),
        pytest.param(
            ONE + 'api_key_env = "NOT_SET"', "[models.m] api_key_env: the variable NOT_SET holds no key", id="no key"
        ),
        pytest.param(
            ONE + 'api_key_file = "keys/none"', "[models.m] api_key_file: [Errno 2] No such file", id="no key file"
        ),
        pytest.param(
            ONE + 'api_key_file = "keys/empty"', "[models.m] api_key_file: the file keys/empty", id="empty key file"
        ),
        pytest.param(
            ONE + 'api_key_env = "KEY_OF_WRITER"\napi_key_file = "keys/reader"',
            "[models.m]: give api_key_env or api_key_file, not both",
            id="two keys",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_its_name_table_and_key(folder: Path, text: str, message: str) -> None:
    with pytest.raises(ModelsFileError) as refused:
        config_of(folder, text)
    assert str(refused.value).startswith(f"{folder}/models.toml: {message}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelsFileError, match=r"none\.toml: \[Errno 2\] No such file"):
        read_models(GatewaySettings.model_validate({"models": tmp_path / "none.toml"}))


def test_the_charts_file_is_a_models_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_ENGINE_API_KEY", "k3")
    monkeypatch.setenv("KEY_OF_MODEL_2", "k4")
    text = CHARTS.read_text().replace("/etc/memloop/profiles/0", "profiles/reading")
    config = config_of(folder, text)
    assert [(spec.id, spec.api_key) for spec in config.specs] == [
        ("MemReader-4B-thinking", "k3"),
        ("RL-MemoryAgent-14B", "k3"),
        ("gpt-4.1-mini", "k4"),
    ]
    assert set(config.roles) == {"writer", "reader", "judge", "chat"}


def test_composes_file_is_a_models_file_whose_profiles_come_from_the_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_ENGINE_API_KEY", "k3")
    config = read_models(GatewaySettings.model_validate({"models": COMPOSES}))
    assert [(spec.id, spec.profile) for spec in config.specs] == [("memloop-tiny-writer", None), ("reader", None)]
    assert config.roles == {"writer": "memloop-tiny-writer", "reader": "reader", "chat": "memloop-tiny-writer"}
