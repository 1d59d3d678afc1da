"""An engine for the console's tests: a chat model that repeats, and a memory writer that follows simple rules."""

import re

from tests.fakes.job_engine import Body, Reply, tool_call

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
_LIVES = re.compile(r"I live in (\w+)")
_LIKES = re.compile(r"I like ([\w ]+)")


def answer(body: Body) -> Reply:
    """A writer's decision where there are tools, else a chat's reply."""
    asked = [str(message["content"]) for message in body["messages"] if message["role"] == "user"]
    return _decision("\n".join(asked)) if body.get("tools") else reply(asked[-1])


def reply(text: str) -> Reply:
    return f"You wrote: {text[-200:]}"


def _decision(text: str) -> Reply:
    if "What a lovely day" in text:
        return "It is indeed."  # no decision: the write fails
    if "Nice weather" in text:
        return thinking("ignore_memory", "Small talk holds no fact.", reason="small talk")
    if "I was about to" in text:
        return thinking("buffer_memory", "The sentence is not finished.", reason="the thought is not finished")
    if HOSTILE in text:
        return kept("markup", f"Ann wrote {HOSTILE}", ["<b>bold</b>"])
    if town := _LIVES.findall(text):
        return kept("home town", f"Ann lives in {town[-1]}.", ["home"])
    if likes := _LIKES.findall(text):
        return kept(f"likes {likes[-1]}", f"Ann likes {likes[-1]}.", ["taste"])
    return thinking("ignore_memory", "Nothing about the user.", reason="nothing to keep")


def kept(key: str, value: str, tags: list[str]) -> Body:
    draft: Body = {"key": key, "memory_type": "UserMemory", "value": value, "tags": tags}
    return thinking(
        "add_memory", f"The user states a fact that lasts: {value}", memory_list=[draft], summary="a lasting fact"
    )


def thinking(tool: str, thought: str, **arguments: object) -> Body:
    return tool_call(tool, **arguments) | {"content": f"<think>{thought}</think>"}
