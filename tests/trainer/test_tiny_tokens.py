"""The model is trained on exactly the tokens that an engine makes of the profile's messages."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
import json
from typing import Any, cast

import pytest
from transformers import AutoTokenizer

from memloop.loops.forms import check_call
from memloop.loops.memreader import FoundCall, find_call
from memloop.loops.parsing.reading import parse_answer, parse_query
from memloop.loops.rendering import listen
from memloop.ports import Completion
from memloop.wire.chat import ChatMessage
from tests.trainer.tiny_world import CHECKPOINT, examples, profile, tokenizer
from trainer.tiny.batches import Encoder, collate
from trainer.tiny.example import Example
from trainer.tiny.tokenizer import prompt_lines
from trainer.tiny.world import PEOPLE, PLACES, VALUES

ROLES = ("read", "answer", "judge", "integrate", "memory", "chat")


def as_openai(message: ChatMessage) -> dict[str, object]:
    plain: dict[str, object] = {"role": message.role, "content": message.text()}
    if message.tool_calls:
        plain["tool_calls"] = [
            {
                "type": "function",
                "function": {"name": call.function.name, "arguments": json.loads(call.function.arguments)},
            }
            for call in message.tool_calls
        ]
    return plain


@pytest.mark.parametrize("role", ROLES)
def test_training_tokens_are_the_chat_templates_tokens(role: str) -> None:
    served = cast(Any, AutoTokenizer).from_pretrained(str(CHECKPOINT))
    chosen = [example for example in examples(400, seed=11) if example.role == role][:20]
    assert chosen
    for example, row in zip(chosen, Encoder(tokenizer()).rows(chosen), strict=True):
        text = served.apply_chat_template(
            [as_openai(message) for message in example.messages],
            tools=list(example.tools) or None,
            add_generation_prompt=True,
            tokenize=False,
            enable_thinking=example.thinking,
        )
        prompt = served(text, add_special_tokens=False)["input_ids"]
        assert row.ids[: len(prompt)] == prompt
        assert row.targets == list(range(len(prompt), len(row.ids)))


def test_every_fixed_line_of_the_prompts_is_one_token() -> None:
    assert [line for line in prompt_lines(profile()) if len(tokenizer().encode(line).ids) != 1] == []


def test_names_and_values_are_single_tokens() -> None:
    words = [*(f" {name}" for name in (*PEOPLE, *PLACES)), *VALUES]
    assert [word for word in words if len(tokenizer().encode(word).ids) != 1] == []


def test_text_survives_the_tokenizer() -> None:
    text = "Käse 7€ \n\n\t </section> <|nonsense|> \\boxed{482} 🙂"
    assert tokenizer().decode(tokenizer().encode(text).ids) == text


def gold(example: Example) -> Completion:
    return Completion(content=example.completion)


def test_every_reply_to_learn_is_understood_by_the_parsers() -> None:
    for example in examples(400, seed=12):
        match example.role:
            case "answer":
                assert parse_answer(gold(example)).boxed
            case "judge":
                assert parse_query(gold(example))[0] == ("ask" if example.completion else "sufficient")
            case "memory":
                call = find_call(gold(example))
                assert isinstance(call, FoundCall)
                assert check_call(call.name, call.arguments)[1] == ""
            case _:
                assert listen(gold(example)).text


def test_a_batch_asks_for_the_token_that_follows() -> None:
    rows = Encoder(tokenizer()).rows(examples(6, seed=13))
    length = max(len(row.ids) for row in rows)
    batch = collate(rows, length)
    flat = batch.ids.flatten().tolist()
    assert batch.goal.tolist() == [flat[at + 1] for at in batch.at.tolist()]
    wanted = [token for row in rows for token in row.ids[row.targets[0] :]]
    assert batch.goal.tolist() == wanted
