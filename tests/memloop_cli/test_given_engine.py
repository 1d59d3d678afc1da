"""``memloop up --engine-url``: what is wrong with a given engine is found before anything starts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memloop_cli.errors import CliError
from memloop_cli.main import app
from memloop_cli.stack.given_engine import GivenEngine, check_engine
from tests.fakes import strict_shapes as shape
from tests.fakes.ports import free_port
from tests.fakes.strict_endpoint import StrictEndpoint, strict_endpoint
from tests.fakes.strict_shapes import Body, Refused
from tests.fakes.strict_specs import SPECS, Spec


def _unknown_model(body: Body) -> Refused | None:
    known = body["model"] == "m"
    return None if known else shape.openai(404, "The model `x` does not exist", code="model_not_found")


OPENAI = next(spec for spec in SPECS if spec.dialect == "openai" and spec.headers)
STRICT = replace(OPENAI, rules=(_unknown_model, *OPENAI.rules))


def given(engine: StrictEndpoint, *, model: str | None = "m", api_key: str | None = "k") -> Mapping[str, str]:
    dialect = engine.spec.dialect if not engine.spec.certain else "auto"
    return GivenEngine(engine.url, model, api_key).environment({"MEMLOOP_ENGINE_DIALECT": dialect})


async def refusal(environment: Mapping[str, str]) -> CliError:
    with pytest.raises(CliError) as found:
        await check_engine(environment)
    return found.value


@pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])
async def test_every_kind_of_endpoint_passes(spec: Spec) -> None:
    async with strict_endpoint(spec) as engine:
        key = next(iter(spec.headers.values()), "k").removeprefix("Bearer ")
        environment = GivenEngine(engine.url, spec.model, key).environment({"MEMLOOP_ENGINE_DIALECT": spec.dialect})

        await check_engine(environment)


async def test_a_refused_key_names_the_option() -> None:
    async with strict_endpoint(STRICT) as engine:
        error = await refusal(given(engine, api_key="wrong"))

    assert error.message == (
        f"the engine at {engine.url} refuses the API key: give another one with --api-key or MEMLOOP_ENGINE_API_KEY"
    )


async def test_a_missing_key_is_asked_for() -> None:
    async with strict_endpoint(STRICT) as engine:
        error = await refusal(given(engine, api_key=None))

    assert "asks for an API key" in error.message


async def test_an_unknown_model_is_answered_with_those_that_are_listed() -> None:
    async with strict_endpoint(STRICT) as engine:
        error = await refusal(given(engine, model="x"))

    assert error.message == f"the engine at {engine.url} has no model x; it lists m"


async def test_without_a_model_the_first_listed_one_is_asked() -> None:
    async with strict_endpoint(STRICT) as engine:
        await check_engine(given(engine, model=None))

    assert engine.asked[-1]["model"] == "m"


async def test_an_address_where_nothing_listens_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"

    error = await refusal(GivenEngine(url, "m").environment({}))

    assert error.message.startswith(f"no engine answers at {url}: ")


async def test_a_path_without_an_api_is_named() -> None:
    async with strict_endpoint(STRICT) as engine:
        url = engine.url.replace("/v1", "/other")
        error = await refusal(GivenEngine(url, "m", "k").environment({}))

    assert (
        error.message
        == f"nothing answers at {url}/chat/completions: the URL must end before that path, mostly with /v1"
    )


@pytest.mark.parametrize("url", ["api.openai.com/v1", "ftp://e.example/v1", "http:///v1"])
async def test_what_is_no_http_url_is_refused_as_input(url: str) -> None:
    error = await refusal(GivenEngine(url, "m").environment({}))

    assert (error.code, "not an absolute http://, https://, " in error.message) == (2, True)


def test_options_win_over_the_environment_and_leave_the_rest() -> None:
    own = {"MEMLOOP_ENGINE_URL": "http://a/v1", "MEMLOOP_ENGINE_API_KEY": "own", "PATH": "/bin"}

    environment = GivenEngine("http://b/v1", "m").environment(own)

    assert environment == {
        "MEMLOOP_ENGINE_URL": "http://b/v1",
        "MEMLOOP_MODEL": "m",
        "MEMLOOP_ENGINE_API_KEY": "own",
        "PATH": "/bin",
    }


def test_up_prints_one_sentence_and_starts_nothing(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    home = tmp_path / "home"

    done = CliRunner().invoke(app, ["up", "--detach", "--home", str(home), "--engine-url", url, "--model", "m"])

    assert (done.exit_code, home.exists()) == (1, False)
    assert done.output.startswith(f"memloop: no engine answers at {url}: ")
    assert done.output.count("\n") == 1
