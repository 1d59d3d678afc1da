"""The tiny model's tokenizer: byte-level BPE in which the world's words, numbers and prompt lines are single tokens."""

# tokenizers' own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import random
import re
from collections.abc import Iterator

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from memloop.profiles import Profile
from trainer.tiny import world
from trainer.tiny.chat_format import tool_line
from trainer.tiny.prose import book

END = "<|im_end|>"
PAD = "<|endoftext|>"
SPECIAL = (PAD, "<|im_start|>", END)
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
VOCABULARY = 4096
RELATE_LINES = ("New memory ", "\n  stored memory ")
"""How the lines of a relate prompt begin."""
_FORMAT_WORDS = ("system", "user", "assistant", "query", "result", "confirmed", "unknown")
_PIECE = r" ?[\p{L}_]+(?: (?=\p{N}))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}_]+|\s*[\r\n]+|\s+(?!\S)|\s+"


def prompt_lines(profile: Profile) -> list[str]:
    """Return the fixed text between the slots of the profile's prompts: each becomes one token.

    A prompt then costs a dozen tokens instead of eighty, and every slot starts a fresh tokenization.
    """
    lines: dict[str, None] = {}
    for spec in profile.prompts.values():
        pattern = "|".join(re.escape(f"{{{slot}}}") for slot in spec.slots)
        lines.update(dict.fromkeys(piece for piece in re.split(pattern, spec.template) if piece))
        if spec.system:
            lines[spec.system] = None
        if spec.tools:
            lines[tool_line(spec.tools)] = None
    return list(lines)


def build_tokenizer(profile: Profile, extra: Iterator[str], *, seed: int = 0) -> Tokenizer:
    """Train the tokenizer on the training prose, the world's words and the `extra` texts (model outputs)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECE), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = prompt_lines(profile)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(TAGS) - len(added),
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(extra, seed), trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in (*TAGS, *added)])
    _check(tokenizer)
    return tokenizer


def extended(tokenizer: Tokenizer, profile: Profile) -> Tokenizer:
    """Add what the profile's prompts hold and the tokenizer lacks, at the end of its vocabulary."""
    lines = (*prompt_lines(profile), *(RELATE_LINES if "relate" in profile.prompts else ()))
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in lines])
    return tokenizer


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """Return the ID of a token that must exist."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise ValueError(f"no token {token!r}")
    return found


def plain_words(tokenizer: Tokenizer) -> list[str]:
    """Return the texts, without surrounding blanks, of the tokens outside the formats that cut no letter."""
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    ids = (number for token, number in sorted(tokenizer.get_vocab().items()) if token not in added)
    texts = (tokenizer.decode([number]).strip() for number in ids)
    return [text for text in texts if text and "\ufffd" not in text]


def _texts(extra: Iterator[str], seed: int) -> Iterator[str]:
    yield book("train").text
    words = [*world.PEOPLE, *world.PLACES, *(w for a in (*world.PERSON_CODES, *world.PLACE_CODES) for w in a.split())]
    numbers = list(world.VALUES)
    rng = random.Random(seed)
    for _ in range(400):
        rng.shuffle(words)
        rng.shuffle(numbers)
        yield " " + " ".join(words)
        yield "\n".join((*_FORMAT_WORDS, *world.PEOPLE, *world.PLACES))
        yield " ".join(numbers)
    yield from extra


def _check(tokenizer: Tokenizer) -> None:
    words = [*world.PEOPLE, *world.PLACES, *(w for a in (*world.PERSON_CODES, *world.PLACE_CODES) for w in a.split())]
    split = [word for word in words if len(tokenizer.encode(f" {word}").ids) != 1]
    split += [value for value in world.VALUES if len(tokenizer.encode(value).ids) != 1]
    if split:
        raise ValueError(f"not single tokens: {split[:10]}")
