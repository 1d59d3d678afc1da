"""A chat model that follows a script, and remembers what it was asked."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from memloop.ports import Completion, Prompt
from memloop.wire.chat import FunctionCall, Json, ToolCall
from memloop.wire.memory import Usage

Line: TypeAlias = str | Completion | Exception
Script: TypeAlias = Callable[[Prompt], Line] | Iterable[Line]


class ScriptedModel:
    """Replies with the script's lines in order, or with what a function makes of the prompt.

    A text is a reply that ended by itself, at a cost of ten tokens in and two out; an exception is raised.
    """

    def __init__(self, script: Script) -> None:
        self._next = script if callable(script) else _reader(script)
        self.prompts: list[Prompt] = []
        self.replies: list[Completion] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        line = self._next(prompt)
        if isinstance(line, Exception):
            raise line
        reply = line if isinstance(line, Completion) else says(line)
        self.replies.append(reply)
        return reply

    @property
    def calls(self) -> int:
        return len(self.prompts)

    @property
    def asked(self) -> list[str]:
        """The text of the last message of each prompt."""
        return [prompt.messages[-1].text() for prompt in self.prompts]


def says(content: str, *, finish_reason: str = "stop", reasoning: str = "") -> Completion:
    """A reply of text."""
    usage = Usage(input_tokens=10, output_tokens=2, llm_calls=1)
    return Completion(content=content, finish_reason=finish_reason, reasoning=reasoning, usage=usage)


def calls_tools(*calls: tuple[str, str], reasoning: str = "") -> Completion:
    """A reply of native tool calls, each a name and its arguments as JSON text."""
    usage = Usage(input_tokens=10, output_tokens=2, llm_calls=1)
    tools = tuple(
        ToolCall(id=f"call_{number}", function=FunctionCall(name=name, arguments=arguments))
        for number, (name, arguments) in enumerate(calls, 1)
    )
    return Completion(content="", finish_reason="tool_calls", reasoning=reasoning, tool_calls=tools, usage=usage)


def draft(key: str, value: str) -> Json:
    """One entry of ``add_memory``'s list."""
    return {"key": key, "memory_type": "UserMemory", "value": value, "tags": []}


def _reader(script: Iterable[Line]) -> Callable[[Prompt], Line]:
    lines = iter(script)

    def read(prompt: Prompt) -> Line:
        line = next(lines, None)
        if line is None:
            raise AssertionError(f"the script is over, and the model was asked: {prompt.messages[-1].text()[-200:]}")
        return line

    return read
