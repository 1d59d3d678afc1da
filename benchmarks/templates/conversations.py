"""Made-up conversations as clients send them: the same for every template and every run."""

import random
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]

SEED: Final = 20261128
_WORDS: Final = ("tea", "harbour", "ticket", "garden", "invoice", "violin", "train", "recipe", "window", "parcel")
_ASKED: Final = ("What about the {}?", "Tell me of my {}.", "And the {}, please?", "Do you remember the {}?")
_SAID: Final = ("The {} is fine.", "I have noted the {}.", "There is nothing new about the {}.", "Sure: the {}.")
TOOL: Final[Object] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks something up.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "description": "What to look up."}},
            "required": ["word"],
        },
    },
}


def conversations(count: int) -> Iterator[Object]:
    """Yield the fields of chat requests: system or developer texts, parts, repeated roles, tool loops, tools."""
    dice = random.Random(SEED)
    for _ in range(count):
        messages: list[Object] = []
        if dice.random() < 0.5:
            role = dice.choice(("system", "system", "developer"))
            messages.append({"role": role, "content": f"Be brief about the {dice.choice(_WORDS)}."})
        if dice.random() < 0.1:
            messages.append(_said(dice))
        for _ in range(dice.randrange(5)):
            messages += [_asked(dice) for _ in range(dice.choice((1, 1, 1, 1, 2)))]
            messages += _tool_loop(dice) if dice.random() < 0.15 else [_said(dice)]
            if dice.random() < 0.05:
                messages.append({"role": "system", "content": "Now answer in one sentence."})
        messages += [_asked(dice) for _ in range(dice.choice((1, 1, 1, 2)))]
        if dice.random() < 0.15:
            messages += _tool_loop(dice)[:-1]
        offers = any("tool_calls" in message for message in messages) or dice.random() < 0.1
        yield {"messages": messages, **({"tools": [TOOL]} if offers else {})}


def _asked(dice: random.Random) -> Object:
    text = dice.choice(_ASKED).format(dice.choice(_WORDS))
    return {"role": "user", "content": [{"type": "text", "text": text}] if dice.random() < 0.1 else text}


def _said(dice: random.Random) -> Object:
    return {"role": "assistant", "content": dice.choice(_SAID).format(dice.choice(_WORDS))}


def _tool_loop(dice: random.Random) -> list[Object]:
    """A call, its result, and what the assistant says of it."""
    word, call_id = dice.choice(_WORDS), f"call{dice.randrange(10_000):05}"
    call = {"id": call_id, "type": "function", "function": {"name": "look_up", "arguments": f'{{"word": "{word}"}}'}}
    return [
        {"role": "assistant", "content": dice.choice(("", "Let me see.")), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": f"The {word} was found."},
        _said(dice),
    ]
