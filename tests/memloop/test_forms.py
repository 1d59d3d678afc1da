"""The writer's form: chosen by what comes back, remembered for the model, fixed by a profile that wants it so."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from memloop.loops.forms import Form, Forms, ladder_of
from memloop.loops.memreader import decide
from memloop.loops.results import AddMemories, DecisionResult, InvalidOutput
from memloop.loops.steps import DecideStep
from memloop.ports import Prompt
from memloop.profiles import Profile, load_profile
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, EngineError, MemloopError, Unavailable
from tests.fakes.model import Line, ScriptedModel, calls_tools, draft, says
from tests.memloop.reading import ListIndex, Recorder, turn

DEFAULT = load_profile("default")
OFFERED = replace(
    DEFAULT, prompts={**DEFAULT.prompts, "memory": replace(DEFAULT.prompts["memory"], tool_choice="auto")}
)
LIST = json.dumps({"memory list": [draft("home", "Ann lives in Rome.")], "summary": "home"})
ADD = calls_tools(("add_memory", json.dumps({"memory_list": [draft("home", "Ann lives in Rome.")], "summary": "s"})))
Model: TypeAlias = Callable[[Form], Line]


def form_of(prompt: Prompt) -> Form:
    """The form in which a prompt asks."""
    if prompt.tools:
        return "forced_tools" if prompt.tool_choice == "required" else "tools"
    return "json_schema" if prompt.reply else "json"


def able_to(*forms: Form, otherwise: Line = "What a lovely day.") -> Model:
    """A model that replies well in these forms alone."""
    return lambda form: otherwise if form not in forms else ADD if "tools" in form else LIST


async def told(model: Model, forms: Forms, profile: Profile = DEFAULT) -> tuple[DecisionResult, list[Form]]:
    """One decision, and the forms in which it was asked for."""
    scripted = ScriptedModel(lambda prompt: model(form_of(prompt)))
    result = await decide([turn("I live in Rome.")], model=scripted, index=ListIndex(), profile=profile, forms=forms)
    return result, [form_of(prompt) for prompt in scripted.prompts]


@pytest.mark.parametrize(
    ("able", "profile", "asked"),
    [
        ("forced_tools", DEFAULT, ["forced_tools"]),
        ("json_schema", DEFAULT, ["forced_tools", "json_schema"]),
        ("tools", OFFERED, ["tools"]),
        ("forced_tools", OFFERED, ["tools", "forced_tools"]),
    ],
)
async def test_a_reply_without_a_call_steps_to_the_next_form(able: Form, profile: Profile, asked: list[Form]) -> None:
    result, forms = await told(able_to(able), Forms(), profile)
    assert forms == asked
    assert [each.value for each in result.decision.drafts] == ["Ann lives in Rome."]
    assert [record.action for record in result.records] == [*["invalid"] * (len(asked) - 1), "add"]
    assert result.usage.llm_calls == len(asked)


@pytest.mark.parametrize(
    ("profile", "rounds"),
    [
        (DEFAULT, [["forced_tools", "json_schema"], *[["forced_tools", "json"]] * 2, ["json"], ["json"]]),
        (
            OFFERED,
            [
                ["tools", "forced_tools"],
                ["tools", "json_schema"],
                *[["tools", "json"]] * 2,
                ["json"],
            ],
        ),
    ],
    ids=["default", "offered"],
)
async def test_what_two_calls_could_not_try_the_next_decision_tries(profile: Profile, rounds: list[list[Form]]) -> None:
    forms = Forms()
    assert [(await told(able_to("json"), forms, profile))[1] for _ in rounds] == rounds


@pytest.mark.parametrize(
    "nothing",
    ["", "Sure!", "I {will} do that.", says("And and and", finish_reason="length"), says("", reasoning="Hm.")],
    ids=["empty", "prose", "braces", "endless", "thoughts alone"],
)
async def test_whatever_holds_no_call_steps_to_the_next_form(nothing: Line) -> None:
    result, asked = await told(able_to("json_schema", otherwise=nothing), Forms())
    assert isinstance(result.decision, AddMemories)
    assert asked == ["forced_tools", "json_schema"]


WRONG = calls_tools(("add_memory", '{"memory_list": [{"key": "k"}]}'))


async def test_a_call_with_wrong_arguments_is_repaired_in_its_own_form() -> None:
    replies = iter([WRONG, ADD])
    _, asked = await told(lambda _: next(replies), Forms())
    assert asked == ["forced_tools", "forced_tools"]


async def test_a_repair_in_vain_makes_way_for_another_form() -> None:
    forms = Forms()
    model = able_to("json_schema", otherwise=WRONG)
    assert (await told(model, forms))[1] == ["forced_tools", "forced_tools"]
    assert (await told(model, forms))[1] == ["forced_tools", "json_schema"]


async def test_one_bad_reply_leaves_the_form_as_it_is() -> None:
    forms = Forms()
    for model in (able_to("json_schema"), able_to("forced_tools"), able_to("json_schema"), able_to("forced_tools")):
        await told(model, forms)
    assert forms.left(DEFAULT)[0] == "forced_tools"


async def test_a_model_that_fails_in_every_form_costs_two_calls_and_changes_nothing_for_other_turns() -> None:
    forms = Forms()
    for _ in range(6):
        result, asked = await told(able_to(), forms)
        assert isinstance(result.decision, InvalidOutput)
        assert (len(asked), result.usage.llm_calls) == (2, 2)
    assert (await told(able_to("forced_tools", "json"), forms))[1] == ["forced_tools"]


async def test_a_model_that_has_learned_to_call_tools_is_found_out_in_time() -> None:
    forms = Forms()
    for _ in range(100):
        await told(able_to("json"), forms)
    assert (await told(able_to("forced_tools"), forms))[1] == ["forced_tools"]


def refused(status: int, message: str, *, code: str | None = None) -> EngineError:
    return EngineError(message, engine_status=status, code=code)


NO_TOOLS = {
    "Ollama": refused(400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    "vLLM": refused(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "llama.cpp": refused(500, "tools param requires --jinja flag"),
    "OpenRouter": refused(404, "No endpoints found that support tool use."),
    "DeepSeek": refused(400, "deepseek-reasoner does not support Function Calling"),
    "Gemini": refused(400, "Function calling is not enabled for models/gemma-3-27b-it"),
    "FastAPI": refused(422, "body.tools: Extra inputs are not permitted."),
    "no reason": refused(400, "Bad Request"),
}


@pytest.mark.parametrize("engine", NO_TOOLS)
async def test_an_engine_that_refuses_tools_is_asked_for_json_and_not_for_tools_again(engine: str) -> None:
    forms = Forms()
    model = able_to("json_schema", otherwise=NO_TOOLS[engine])
    assert (await told(model, forms))[1] == ["forced_tools", "json_schema"]
    assert (await told(model, forms))[1] == ["json_schema"]


@pytest.mark.parametrize(
    "error",
    [
        refused(401, "Incorrect API key provided: tools"),
        refused(404, "The model `m` does not exist"),
        refused(429, "too many requests for functions"),
        refused(500, "out of memory"),
        refused(400, "too long", code=CONTEXT_LENGTH_EXCEEDED),
        Unavailable("gone"),
    ],
    ids=lambda error: error.message,
)
async def test_an_error_of_another_kind_is_raised_at_once(error: MemloopError) -> None:
    forms, asked = Forms(), list[Form]()

    def model(form: Form) -> Line:
        asked.append(form)
        return error

    with pytest.raises(type(error), match=error.message):
        await told(model, forms)
    assert asked == ["forced_tools"]
    assert forms.left(DEFAULT)[0] == "forced_tools"


async def test_an_engine_that_refuses_every_form_raises_its_first_words_and_nothing_is_learned() -> None:
    forms, errors = Forms(), iter([refused(400, "first"), refused(400, "second"), refused(400, "third")])
    with pytest.raises(EngineError, match="first"):
        await told(lambda _: next(errors), forms)
    assert forms.left(DEFAULT)[0] == "forced_tools"


async def test_a_refusal_after_a_bad_reply_leaves_the_bad_reply() -> None:
    replies = iter(["prose", refused(400, "no"), refused(400, "no")])
    result, _ = await told(lambda _: next(replies), Forms())
    assert isinstance(result.decision, InvalidOutput)
    assert result.decision.raw == "prose"


async def test_a_template_without_tools_is_never_asked_to_call_them() -> None:
    assert (await told(able_to("json_schema"), Forms(tools=False)))[1] == ["json_schema"]


@pytest.mark.parametrize(
    ("profile", "ladder"),
    [
        ("default", ("forced_tools", "json_schema", "json")),
        ("section-first", ("forced_tools", "json_schema", "json")),
        ("extractor", ("json_schema", "json")),
        ("small", ("lines",)),
        ("tiny", ("tools",)),
        ("tiny-writer", ("tools",)),
    ],
)
def test_a_profile_of_a_trained_model_fixes_the_form(profile: str, ladder: Sequence[Form]) -> None:
    assert ladder_of(load_profile(profile)) == ladder


def test_a_profile_with_words_of_its_own_fixes_the_form(tmp_path: Path) -> None:
    manifest = 'name = "mine"\nversion = "1"\nextends = "default"\n[prompts.memory]\ntemplate = "mine.txt"\n'
    (tmp_path / "manifest.toml").write_text(manifest)
    (tmp_path / "mine.txt").write_text("Remember: {conversation}")
    assert ladder_of(load_profile(tmp_path)) == ("forced_tools",)
    (tmp_path / "manifest.toml").write_text(manifest + '[prompts.extract]\ntemplate = "mine.txt"\n')
    assert ladder_of(load_profile(tmp_path)) == ("forced_tools", "json")


async def test_without_a_memory_of_forms_the_form_is_the_profiles_own() -> None:
    model = ScriptedModel(["no", "no"])
    result = await decide([turn("I live in Rome.")], model=model, index=ListIndex(), profile=DEFAULT)
    assert isinstance(result.decision, InvalidOutput)
    assert [form_of(prompt) for prompt in model.prompts] == ["forced_tools"] * 2


async def test_a_form_that_failed_is_reported_as_rejected_and_the_decision_once() -> None:
    for replies in ([("no"), LIST], ["no", "no"], [WRONG, WRONG]):
        recorder = Recorder[DecideStep]()
        model = ScriptedModel(replies)
        await decide([turn("hi")], model=model, index=ListIndex(), profile=DEFAULT, forms=Forms(), report=recorder)
        assert recorder.names == ["OutputRejected", "Decided"]
