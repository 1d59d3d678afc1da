"""A model as a loop calls it: every call is measured, and a prompt that its engine read only in part fails.

Some engines cut a prompt that exceeds their window and answer 200: Ollama's OpenAI route, llama.cpp with its context
shift, proxies. Such a call fails in place of a reply to half a text. Usage shows it: far fewer tokens than such a text
has, or exactly a round window. Usage is odd in other ways, too (cached tokens left out, constants, other tokenizers):
a suspicion is checked before it counts. Two calls of one token show how many tokens a part of the same text has, and a
third whether a longer prompt has more.
"""

import secrets
import time
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.trace import SpanKind

from gateway.engine.window import Ask, Window
from gateway.metrics import Metrics
from memloop.ports import ChatModel, Completion, Prompt
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, ContextTruncated, DependencyError, EngineError
from memloop_clients.refusals import overflow_of
from memloop_service.tracing import model_call, note_usage, span

_LEAST_TOKENS: Final = 900
"""No window in use keeps less of a prompt that exceeds it."""
_ROUND_TOKENS: Final = 256
_ROUND_TOTAL: Final = 1024
_FAR: Final = 1.3
"""So many times the usual characters of a token are suspicious, …"""
_SURELY: Final = 1.35
"""… and so many times those of a part of the same text are a cut."""
_PART_CHARS: Final = 2_400
_SLICES: Final = 16


@dataclass(frozen=True, slots=True)
class WatchedModel:
    """A ChatModel with metrics and a span around each call, which raises ContextTruncated when its engine cut a prompt.

    Put it inside a ``Journaled``: replays do not count. ``ask`` asks the endpoint for the window. ``label`` names the
    model in metrics, its window does in spans.
    """

    model: ChatModel
    window: Window
    ask: Ask
    metrics: Metrics
    label: str
    operation: str

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply. Raises ContextTruncated, and the inner model's errors."""
        try:
            completion = await self._called(prompt)
        except EngineError as error:
            if error.code != CONTEXT_LENGTH_EXCEEDED:
                raise
            stated = overflow_of(error.message)
            if stated and stated.window_tokens and stated.window_tokens < self.window.limit_tokens:
                self.window.shrink(stated.window_tokens)
            raise ContextTruncated(error.message) from error
        kept = await self._kept(prompt, completion)
        if kept is not None:
            self.metrics.prompts_cut.labels(self.label).inc()
            self.window.shrink(kept)
            raise ContextTruncated(
                f"The engine cut a prompt: it kept {kept} tokens, and its reply is dropped. Later prompts are shorter;"
                " enlarge the model's window, or set MEMLOOP_WINDOW_TOKENS to it."
            )
        if not self.window.settled:
            await self.window.look(self.ask)
        return completion

    async def _called(self, prompt: Prompt) -> Completion:
        """Call the inner model once, and count the call."""
        began = time.perf_counter()
        with span(*model_call("chat", self.window.model), kind=SpanKind.CLIENT) as call:
            try:
                completion = await self.model.complete(prompt)
            except DependencyError as error:
                self.metrics.count_error(error, model=self.label)
                raise
            self.metrics.count_call(self.label, time.perf_counter() - began)
            usage = completion.usage
            self.metrics.count_tokens("input", self.operation, self.label, usage.input_tokens)
            self.metrics.count_tokens("output", self.operation, self.label, usage.output_tokens)
            note_usage(call, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
            call.set_attribute("gen_ai.response.finish_reasons", (completion.finish_reason,))
        return completion

    async def _kept(self, prompt: Prompt, completion: Completion) -> int | None:
        """Return the tokens that the engine kept of a prompt, or of prompt and reply, that it cut; else None."""
        asked, replied, measured = completion.usage.input_tokens, completion.usage.output_tokens, self.window.measured
        if asked < _LEAST_TOKENS:
            return None
        if completion.finish_reason == "length" and replied < prompt.sampling.max_tokens:
            total = asked + replied
            if total % _ROUND_TOTAL in (0, _ROUND_TOTAL - 1) or total == self.window.tokens:
                return total
        text = "\n".join(message.text() for message in prompt.messages)
        far = len(text) > _FAR * measured.chars_per_token * asked
        full = asked >= measured.most_tokens and (asked % _ROUND_TOKENS == 0 or asked == measured.most_tokens)
        # An engine that cuts keeps at least half of its window: what is much shorter than another prompt is whole.
        suspicious = (far or full) and 2 * asked >= measured.most_tokens and asked != measured.cleared_tokens
        measured.most_tokens = max(measured.most_tokens, asked)
        if suspicious and await self._is_cut(prompt, text, asked):
            return asked
        measured.cleared_tokens = asked if suspicious else measured.cleared_tokens
        measured.chars_per_token = max(measured.chars_per_token, len(text) / asked)
        return None

    async def _is_cut(self, prompt: Prompt, text: str, asked: int) -> bool:
        # Slices from all over the text, which are as dense as the whole
        size = min(_PART_CHARS, len(text) // 3) // _SLICES
        part = "".join(text[place * len(text) // _SLICES :][:size] for place in range(_SLICES))
        short = replace(
            prompt, tools=(), tool_choice="auto", reply=None, sampling=replace(prompt.sampling, max_tokens=1)
        )
        around, alone = [
            await self._count(replace(short, messages=(ChatMessage(role="user", content=_marked(some)),)))
            for some in ("", part)
        ]
        *before, last = prompt.messages
        more = last.model_copy(update={"content": _marked(last.text())})
        longer = await self._count(replace(prompt, messages=(*before, more)))  # some keep what the reply leaves
        if not 0 < around < alone < longer or longer < _LEAST_TOKENS:
            return False
        if longer <= asked:  # more text, and not one token more
            return True
        return len(text) / (longer - around) > _SURELY * len(part) / (alone - around)

    async def _count(self, prompt: Prompt) -> int:
        """Return how many tokens the engine counts; 0 where it does not answer."""
        try:
            counted = await self._called(prompt)
        except DependencyError:
            return 0
        return counted.usage.input_tokens


def _marked(text: str) -> str:
    """Return the text behind a mark of its own, so that nothing of it is in a cache."""
    return f"{secrets.token_hex(8)}\n{text}"


@dataclass(frozen=True, slots=True)
class Affine:
    """A ChatModel whose prompts have the key of one document; each segment of those read side by side has its own.

    The key comes from the record of the read, never from a field of the client's request.
    """

    model: ChatModel
    key: str

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply."""
        segment = prompt.branch.partition("/")[0]  # ``s3``; the questions of one document share its key
        key = f"{self.key}/{segment}" if segment.startswith("s") else self.key
        return await self.model.complete(replace(prompt, affinity=key))
