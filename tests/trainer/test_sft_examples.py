"""What is learned stands exactly where the served loop would have generated it."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from memloop.ports import Completion
from memloop.profiles import load_profile
from memloop.wire.chat import ChatMessage, FunctionCall, Json, ToolCall
from trainer.__main__ import main
from trainer.data.parquet import read_parquet, write_parquet
from trainer.data.replies import reply_message
from trainer.data.rows import conversation_row
from trainer.data.schemas import CONVERSATION
from trainer.data.world import LOOP_ROLES, world_turns
from trainer.sft.examples import Examples, TemplateError
from trainer.sft.recipe import RecipeError, load_sft_recipe
from trainer.tiny.chat_format import render_prompt, tool_call_text

MODEL = Path("services/inference/models/memloop-tiny")
RECIPES = sorted(Path("trainer/recipes/sft").glob("*.yaml"))


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    tokenizers: Any = AutoTokenizer
    return tokenizers.from_pretrained(MODEL)


@pytest.fixture(scope="module")
def rows() -> list[Json]:
    return list(islice(world_turns(load_profile("tiny"), part="train", seed=0), 300))


def learned(example: Any, tokenizer: Any) -> tuple[str, str]:
    start = example.completion_mask.index(1)
    assert example.completion_mask == [0] * start + [1] * (len(example.input_ids) - start)
    return tokenizer.decode(example.input_ids[:start]), tokenizer.decode(example.input_ids[start:])


def test_every_role_of_the_world_is_learned_after_its_served_prompt(tokenizer: Any, rows: list[Json]) -> None:
    examples = Examples(tokenizer, max_tokens=2048)
    seen = set[str]()
    for row in rows:
        (example,) = examples.of_row(row)
        prompt, reply = learned(example, tokenizer)
        *before, last = [ChatMessage.model_validate(message) for message in row["messages"]]  # type: ignore[union-attr]
        tools = json.loads(str(row["tools"])) if row["tools"] else ()
        thinking = bool(row["enable_thinking"])
        assert prompt == render_prompt(tuple(before), tools=tools, thinking=thinking)
        spoken = tool_call_text(last.tool_calls[0]) if last.tool_calls else last.text()
        thought = (last.model_extra or {}).get("reasoning_content")
        assert reply == (f"<think>\n{thought}\n</think>\n\n" if thought else "") + spoken + "<|im_end|>"
        seen.add(str(row["extra_info"]["kind"]).partition("/")[0])  # type: ignore[index]
    assert seen == set(LOOP_ROLES)


def test_each_reply_of_a_long_conversation_is_an_example_and_the_others_are_context(tokenizer: Any) -> None:
    call = ToolCall(function=FunctionCall(name="search_memory", arguments='{"query": "tea"}'))
    messages = (
        ChatMessage(role="user", content="[user]: tea"),
        ChatMessage(role="assistant", content="nonsense"),
        ChatMessage(role="user", content="Not a valid call."),
        ChatMessage(role="assistant", content="", tool_calls=(call,)),
        ChatMessage(role="tool", content="nothing"),
        ChatMessage(role="assistant", content="done"),
    )
    row = conversation_row(data_source="t", index=0, id_="0", kind="t", messages=messages, learned=[3, 5])
    found = [learned(example, tokenizer) for example in Examples(tokenizer, max_tokens=512).of_row(row)]
    assert [reply.split("\n")[-1] for _, reply in found] == ["</tool_call><|im_end|>", "done<|im_end|>"]
    assert "nonsense" in found[0][0]
    assert found[1][0].count("<tool_call>") == 1


def test_a_row_survives_parquet(tokenizer: Any, rows: list[Json], tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "rows.parquet", CONVERSATION)
    examples = Examples(tokenizer, max_tokens=2048)
    for before, after in zip(rows, read_parquet(tmp_path / "rows.parquet"), strict=True):
        assert list(examples.of_row(before)) == list(examples.of_row(after))


def test_what_is_too_long_is_left_out_and_counted(tokenizer: Any, rows: list[Json]) -> None:
    examples = Examples(tokenizer, max_tokens=100)
    kept = [example for row in rows for example in examples.of_row(row)]
    assert all(len(example.input_ids) <= 100 for example in kept)
    assert len(kept) + examples.too_long == len(rows)
    assert kept
    assert examples.too_long


class Templated:
    """A tokenizer whose template is a function."""

    eos_token = "<end>"

    def __init__(self, turn: str, generation: str) -> None:
        self._turn = turn
        self._generation = generation

    def apply_chat_template(
        self, messages: list[Json], *, tools: object, tokenize: bool, add_generation_prompt: bool, **_: bool
    ) -> str:
        text = "".join(self._turn.format(**message) for message in messages)
        return text + self._generation if add_generation_prompt else text

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(text.encode())


@pytest.mark.parametrize(
    ("turn", "generation"),
    [
        pytest.param("({role}:{content}<end>)", "(assistant>", id="another-generation-prompt"),
        pytest.param("({role}:{content})", "(assistant:", id="no-end-token"),
    ],
)
def test_a_template_that_hides_where_a_reply_begins_or_ends_is_refused(turn: str, generation: str) -> None:
    messages = (ChatMessage(role="user", content="a"), ChatMessage(role="assistant", content="b"))
    row = conversation_row(data_source="t", index=0, id_="0", kind="t", messages=messages, learned=[1])
    with pytest.raises(TemplateError):
        list(Examples(Templated(turn, generation), max_tokens=512).of_row(row))


@pytest.mark.parametrize(
    ("reply", "with_tools", "text", "calls"),
    [
        pytest.param('<tool_call>{"name": "x", "arguments": {"q": "é"}}</tool_call>', True, "", ["x"], id="a-call"),
        pytest.param('{"name": "x", "arguments": {}}', False, '{"name": "x", "arguments": {}}', [], id="a-text"),
        pytest.param("<think>hm</think>So.", True, "So.", [], id="no-call-where-one-should-be"),
    ],
)
def test_a_reply_becomes_the_message_that_the_loop_takes(
    reply: str, with_tools: bool, text: str, calls: list[str]
) -> None:
    message = reply_message(Completion(reply), with_tools=with_tools)
    assert (message.text(), [call.function.name for call in message.tool_calls or ()]) == (text, calls)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_can_be_read(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["sft", "--recipe", str(recipe), "--check", "steps=3"])
    assert json.loads(capsys.readouterr().out)["command"] == "sft"
    assert load_sft_recipe(recipe, ("steps=3", "lora.rank=8")).steps == 3


def test_an_override_gives_a_section_that_the_recipe_lacks_its_first_key(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(BASE + "lora:\n")
    lora = load_sft_recipe(path, ("lora.rank=8",)).lora
    assert lora is not None
    assert lora.rank == 8


def test_an_override_below_a_value_is_refused_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["sft", "--recipe", str(RECIPES[0]), "--check", "batch.x=4"])
    assert capsys.readouterr().err == "batch.x=4: batch is a value without keys\n"


BASE = "model: m\ntrain: [a.parquet]\noutput: o\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(BASE + "learning_rat: 1", "learning_rat: Extra inputs", id="unknown-key"),
        pytest.param(BASE + "batch: 3\nper_device: 2", "batch must be a multiple", id="odd-batch"),
        pytest.param("[]", "no recipe", id="a-list"),
        pytest.param("a: [", "while parsing", id="no-yaml"),
    ],
)
def test_a_faulty_recipe_is_refused_with_its_file_and_why(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError, match=complaint) as refused:
        load_sft_recipe(path)
    assert str(path) in str(refused.value)
