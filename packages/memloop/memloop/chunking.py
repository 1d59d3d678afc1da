"""Cuts documents into chunks by the served model's tokens, without torch.

A text of any size is worked through one window at a time, each window starting where the last chunk ended. So a text
that comes in blocks is cut exactly as a whole one, and no more of it is held than one window. Tokens are counted on
the text *as a prompt shows it* (``neutralise``), so a document full of ``<|im_end|>`` fits its window too.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from memloop.ports import Chunk, HeldChunks
from memloop.profiles import neutralise, well_formed
from memloop.wire.chat import Json

if TYPE_CHECKING:
    from tokenizers import Encoding

_CHARS_PER_TOKEN = 4.0
_MARGIN = 1.2
_BYTES_OF_PROSE = 3
_COUNT_AT_ONCE_CHARS = 1 << 18


class _Ahead:
    """The rest of a text that arrives in blocks. It holds only the part that was inspected."""

    def __init__(self, blocks: Iterable[str]) -> None:
        self._blocks = iter(blocks)
        self._held = ""
        self._start = 0

    def peek(self, chars: int) -> str:
        """Return the next characters, fewer at the text's end."""
        self._hold(chars)
        return self._held[self._start : self._start + chars]

    def ends_within(self, chars: int) -> bool:
        """Return whether at most so many characters are left."""
        self._hold(chars + 1)
        return len(self._held) - self._start <= chars

    def skip(self, chars: int) -> None:
        """Move past characters that were inspected."""
        self._start += chars

    def _hold(self, chars: int) -> None:
        missing = chars - (len(self._held) - self._start)
        parts: list[str] = []
        while missing > 0 and (block := next(self._blocks, None)) is not None:
            parts.append(block)
            missing -= len(block)
        if parts:
            self._held, self._start = "".join((self._held[self._start :], *parts)), 0


class _Splitter(ABC):
    """What both ways to count have in common: one chunk after the other, each cut as ``cut`` says."""

    def split(self, text: str, *, chunk_tokens: int) -> HeldChunks:
        """Cut the text into consecutive chunks that join to it exactly; none for an empty text."""
        return HeldChunks(self.stream((text,), chunk_tokens=chunk_tokens))

    def stream(self, blocks: Iterable[str], *, chunk_tokens: int) -> Iterator[Chunk]:
        """Cut a text that arrives in blocks, as ``split`` does."""
        if chunk_tokens < 1:
            raise ValueError("a chunk has at least one token")
        ahead, start, index, chars_per_token = _Ahead(blocks), 0, 0, _CHARS_PER_TOKEN
        while not ahead.ends_within(0):
            size, tokens = self.cut(ahead, chunk_tokens, chars_per_token)
            yield Chunk(index=index, start=start, end=start + size, text=ahead.peek(size), tokens=tokens)
            ahead.skip(size)
            chars_per_token = max(0.25, size / max(1, tokens))
            start, index = start + size, index + 1

    @abstractmethod
    def cut(self, ahead: _Ahead, chunk_tokens: int, chars_per_token: float) -> tuple[int, int]:
        """Return (characters, tokens) of the next chunk: at least one character, nearly the longest in the limit."""


class TokenizerSplitter(_Splitter):
    """Cuts by a Hugging Face ``tokenizer.json``. Encoding leaves Python's lock, so a thread is enough to run it in.

    Cuts fall between two tokens and never inside a character (a code point). Each chunk, encoded alone, has at most
    ``chunk_tokens`` tokens; only a single character that needs more stands alone in a longer chunk.

    Creating one imports the tokenizers library; a process that only estimates never imports it.
    """

    def __init__(self, tokenizer_json: str | bytes) -> None:
        from tokenizers import Tokenizer

        spec = cast(Json, json.loads(tokenizer_json))
        spec |= {"truncation": None, "padding": None, "post_processor": None}
        described = json.dumps(spec)
        self._tokenizer = Tokenizer.from_str(described)
        self._tokenizer.encode_special_tokens = True
        added = self._tokenizer.get_added_tokens_decoder().values()
        self.special_tokens = frozenset(token.content for token in added if token.special)
        """The texts that the tokenizer turns into control tokens, such as ``<|im_end|>``."""
        self.name = f"tokenizer-{hashlib.sha256(described.encode()).hexdigest()[:16]}"

    def count(self, text: str) -> int:
        """Count the text's tokens in a prompt's slot; exact up to 256 Ki characters, block by block beyond."""
        blocks = range(0, len(text), _COUNT_AT_ONCE_CHARS)
        return sum(self._count(text[start : start + _COUNT_AT_ONCE_CHARS]) for start in blocks)

    def count_own(self, text: str) -> int:
        """Count the tokens of a prompt's own text, whose tags are kept."""
        return len(self._encode(text))

    def cut(self, ahead: _Ahead, chunk_tokens: int, chars_per_token: float) -> tuple[int, int]:
        size = self._token_boundary(ahead, chunk_tokens, chars_per_token)
        tokens = self._count(ahead.peek(size))
        while tokens > chunk_tokens and size > 1:
            size = max(1, min(size * chunk_tokens // tokens, size - 1))
            tokens = self._count(ahead.peek(size))
        return size, tokens

    def _token_boundary(self, ahead: _Ahead, chunk_tokens: int, chars_per_token: float) -> int:
        """Return where the first ``chunk_tokens`` tokens ahead end, in characters."""
        window = int(chunk_tokens * chars_per_token * _MARGIN) + 16
        while True:
            text = ahead.peek(window)
            encoding = self._encode(text)
            if len(encoding) > chunk_tokens:
                return _last_clean_cut(encoding, chunk_tokens)
            if ahead.ends_within(window):
                return len(text)
            window *= 2

    def _count(self, text: str) -> int:
        return len(self._encode(neutralise(text)))

    def _encode(self, text: str) -> "Encoding":
        return self._tokenizer.encode(well_formed(text), add_special_tokens=False)


class EstimatingSplitter(_Splitter):
    """Cuts without a tokenizer, by bytes, on the safe side for text that people write.

    A letter, a blank or a byte beyond ASCII counts half a token, anything else (digits, punctuation) a whole one.
    English prose takes about half of the estimate, code and Chinese two thirds.
    """

    name = "estimate"
    special_tokens: frozenset[str] = frozenset()

    def count(self, text: str) -> int:
        """Return an upper estimate of the text's tokens."""
        raw = neutralise(text).encode("utf-8")
        half_tokens = len(raw) + raw.translate(_WHOLE).count(1)
        return (half_tokens + 1) // 2

    def count_own(self, text: str) -> int:
        """Return a closer estimate, for the prose of prompts: three bytes to a token."""
        return -(-len(text.encode()) // _BYTES_OF_PROSE)

    def cut(self, ahead: _Ahead, chunk_tokens: int, chars_per_token: float) -> tuple[int, int]:
        del chars_per_token
        text = ahead.peek(2 * chunk_tokens)
        low, high = 1, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.count(text[:middle]) <= chunk_tokens:
                low = middle
            else:
                high = middle - 1
        return low, self.count(text[:low])


def _last_clean_cut(encoding: "Encoding", limit: int) -> int:
    """Return the end of the last token within the limit that shares no character with the next one; at least 1."""
    for kept in range(limit, 0, -1):
        end = _span(encoding, kept - 1)[1]
        if end <= _span(encoding, kept)[0] and end > 0:
            return end
    return 1


def _span(encoding: "Encoding", token: int) -> tuple[int, int]:
    return cast(tuple[int, int], encoding.token_to_chars(token))


_WHOLE = bytes(int(not (chr(byte).isalpha() or chr(byte).isspace() or byte > 127)) for byte in range(256))
