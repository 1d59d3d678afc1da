"""Measures reading of whole documents: facts about people planted into prose of authors that training never shows.

The documents are read as they are served: chunk by chunk into a memory that each reply overwrites, with the profile's
prompts and the published splitter. All documents go on together, one chunk a round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Literal

from memloop.chunking import TokenizerSplitter
from memloop.loops.parsing.reading import parse_answer
from memloop.ports import Completion
from trainer.small.evaluate import Reply, Scores, plain
from trainer.small.kinds import English
from trainer.small.novels import prose
from trainer.small.reading import Planted, draw_planted
from trainer.small.sample import PROFILE, Sample

_CHARS_PER_TOKEN: Final = 4.2
_MOST_MEMORY_CHARS: Final = 1_200
"""About the profile's memory: a longer one is cut, as the loop cuts it."""
End = Literal["right", "never kept", "lost later", "answered wrongly"]


@dataclass(slots=True)
class _Document:
    """A document that is being read: its question, what is left of it, the memory, and the sentences once kept."""

    planted: Planted
    group: str
    chunks: deque[str]
    memory: str = ""
    kept: set[str] = field(default_factory=set[str])
    lost: int = 0

    def read(self) -> Sample:
        """Take the next chunk, and return its turn."""
        memory = self.memory or PROFILE.empty_memory
        section = self.chunks.popleft()
        return Sample("read", PROFILE.render("read", problem=self.planted.question, memory=memory, section=section), "")

    def remember(self, memory: str) -> None:
        """Take a reply as the memory, and note what of the needed sentences came or went."""
        self.memory = memory.strip()[:_MOST_MEMORY_CHARS]
        now = {text for text in self.planted.needed if plain(text) in plain(self.memory)}
        self.lost += len(self.kept - now)
        self.kept |= now

    def conclude(self) -> Sample:
        """Return the turn that asks for the answer."""
        memory = self.memory or PROFILE.empty_memory
        messages = PROFILE.render("answer", problem=self.planted.question, memory=memory)
        return Sample("conclude", messages, "", golds=(self.planted.gold,))

    def ended(self, reply: str) -> End:
        """Judge the answer, and say where a wrong one went wrong."""
        if plain(parse_answer(Completion(reply)).text) == plain(self.planted.gold):
            return "right"
        if len(self.kept) < len(self.planted.needed):
            return "never kept"
        return "answered wrongly" if all(plain(text) in plain(self.memory) for text in self.kept) else "lost later"


def read_documents(
    reply: Reply,
    tokenizer: Path,
    *,
    lengths: Sequence[int],
    count: int,
    chunk_tokens: int = PROFILE.budget.chunk_tokens,
) -> dict[str, object]:
    """Read ``count`` documents of each length in tokens, and return figures by length, hops and kinds.

    ``tokenizer`` is a ``tokenizer.json``. Half of the documents ask for kinds of facts that training shows.
    """
    splitter = TokenizerSplitter(tokenizer.read_text("utf-8"))
    drawn = (_drawn(splitter, length, number, chunk_tokens) for length in lengths for number in range(count))
    documents = list(drawn)
    rewrites = 0
    while reading := [document for document in documents if document.chunks]:
        turns = [document.read() for document in reading]
        rewrites += len(turns)
        for document, memory in zip(reading, reply(turns), strict=True):
            document.remember(memory)
    scores, ends = Scores(), dict[str, int]()
    for document, answer in zip(documents, reply([document.conclude() for document in documents]), strict=True):
        end = document.ended(answer)
        ends[end] = ends.get(end, 0) + 1
        scores.add(document.group, right=end == "right")
    lost = sum(document.lost for document in documents)
    return {**scores.report(), "ends": ends, "rewrites": rewrites, "sentences lost": lost}


def _drawn(splitter: TokenizerSplitter, tokens: int, number: int, chunk_tokens: int) -> _Document:
    seen, hops = number % 2 == 0, 1 + number // 2 % 2
    english, rng = English("train" if seen else "held_out", words_held_out=True), Random(f"document/{tokens}/{number}")
    planted = draw_planted(english, rng, hops=hops)
    sentences, texts, chars = prose("held_out"), list[str](), 0
    start = rng.randrange(len(sentences))
    while chars < tokens * _CHARS_PER_TOKEN:
        texts.append(sentences[(start + len(texts)) % len(sentences)])
        chars += len(texts[-1]) + 1
    for text in (*planted.needed, *planted.near):
        texts.insert(rng.randrange(len(texts) + 1), text)
    chunks = splitter.split(" ".join(texts), chunk_tokens=chunk_tokens)
    group = f"{tokens // 1024}k, {hops} hop{'s' * (hops > 1)}, {'trained' if seen else 'unseen'} kinds"
    return _Document(planted, group, deque(chunk.text for chunk in chunks))
