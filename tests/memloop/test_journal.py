import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.loops.journal import Journaled, dump_completion, load_completion, prompt_digest
from memloop.loops.memreread import reread_document
from memloop.ports import Completion, Prompt
from memloop.profiles import load_profile
from memloop.wire.errors import Unavailable
from tests.fakes.model import ScriptedModel, calls_tools, says
from tests.memloop.reading import chunks_of

PROFILE = load_profile("default")
SCRIPT = ["r1", "r2", "<query>x</query>", "s1", "s2", r"\boxed{y}", "merged", "", r"\boxed{done}"]


class DictCheckpoints:
    """Checkpoints in a dict, as bytes, as a real store would hold them."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def load(self, key: str) -> Completion | None:
        raw = self.kept.get(key)
        return None if raw is None else load_completion(raw)

    async def save(self, key: str, completion: Completion) -> None:
        self.kept[key] = dump_completion(completion)


@pytest.mark.parametrize("died_after", range(len(SCRIPT)))
async def test_a_read_that_died_anywhere_resumes_without_paying_twice(died_after: int) -> None:
    chunks, checkpoints = chunks_of("a", "b"), DictCheckpoints()
    dying = ScriptedModel([*SCRIPT[:died_after], Unavailable("gone")])
    with pytest.raises(Unavailable):
        await reread_document("q", chunks, model=Journaled(dying, checkpoints), profile=PROFILE)
    rest = ScriptedModel(SCRIPT[died_after:])
    journal = Journaled(rest, checkpoints)
    resumed = await reread_document("q", chunks, model=journal, profile=PROFILE)
    whole = await reread_document("q", chunks, model=ScriptedModel(SCRIPT), profile=PROFILE)
    assert resumed == whole
    assert (journal.replayed, rest.calls) == (died_after, len(SCRIPT) - died_after)


async def test_equal_prompts_in_one_run_are_calls_of_their_own() -> None:
    checkpoints = DictCheckpoints()
    prompt = PROFILE.prompt("answer", problem="p", memory="m")
    first = Journaled(ScriptedModel(["one", "two"]), checkpoints)
    assert [(await first.complete(prompt)).content for _ in range(2)] == ["one", "two"]
    again = Journaled(ScriptedModel([]), checkpoints)
    assert [(await again.complete(prompt)).content for _ in range(2)] == ["one", "two"]


def test_the_key_changes_with_all_that_shapes_the_reply() -> None:
    read = PROFILE.prompt("answer", problem="p", memory="m")
    others: list[Prompt] = [
        PROFILE.prompt("answer", problem="p", memory="n"),
        PROFILE.with_memory_tokens(7).prompt("read", problem="p", memory="m", section="s"),
        PROFILE.prompt("read", problem="p", memory="m", section="s"),
        PROFILE.prompt("memory", conversation="c"),
    ]
    assert len({prompt_digest(prompt) for prompt in [read, *others]}) == 5
    assert prompt_digest(read) == prompt_digest(PROFILE.prompt("answer", problem="p", memory="m"))


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_reply_survives_its_checkpoint(content: str, reasoning: str) -> None:
    reply = says(content, reasoning=reasoning, finish_reason="length")
    assert load_completion(dump_completion(reply)) == reply


def test_tool_calls_survive_their_checkpoint() -> None:
    reply = calls_tools(("add_memory", '{"cut'), ("b", "{}"))
    assert load_completion(dump_completion(reply)) == reply
