import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memloop.loops.memreader import FoundCall, NoCall, find_call
from memloop.loops.parsing.reading import parse_answer, parse_memory, parse_query
from memloop.loops.rendering import listen, split_thinking, without_thoughts
from memloop.ports import Completion
from tests.fakes.model import calls_tools, says
from tests.memloop.growth import is_linear

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<query>", "</query>", "\\boxed{", "\\fbox{")
MARKS = ("{", "}", "[", "]", '"', "\\", "a", "\n", "\0", "\ud800")
CALL = '{"name": "ignore_memory", "arguments": {"reason": "x"}}'
FRAGMENTS = st.lists(st.sampled_from([*TAGS, *MARKS, CALL]), max_size=20).map("".join)
REPLIES = st.builds(
    Completion,
    content=ANY_TEXT | FRAGMENTS,
    finish_reason=st.sampled_from(["stop", "length", "tool_calls", "content_filter", ""]),
    reasoning=ANY_TEXT | FRAGMENTS,
)


@pytest.mark.parametrize(
    ("text", "answer", "given"),
    [
        ("Therefore, the answer is **locker 13**.", "locker 13", True),
        ("the answer is 1. Wait, the answer is 2.", "2", True),
        ("It is in \\boxed{13}", "It is in \\boxed{13}", False),
    ],
)
def test_an_answer_in_words_follows_the_last_the_answer_is(text: str, answer: str, given: bool) -> None:
    found = parse_answer(says(text), "words")
    assert (found.text, found.boxed) == (answer, given)


@given(REPLIES)
def test_no_reply_breaks_a_parser_and_all_text_is_well_formed(reply: Completion) -> None:
    texts = [listen(reply).text, listen(reply).reasoning, parse_memory(reply), parse_answer(reply).text]
    texts.append(parse_query(reply)[1] or "")
    for text in texts:
        text.encode("utf-8")
        assert "\0" not in text
    assert isinstance(find_call(reply), FoundCall | NoCall)


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("answer", ("answer", "", True)),
        ("<think>a</think>answer", ("answer", "a", True)),
        ("a</think>\n\nanswer", ("answer", "a", True)),
        ("<think>a</think>b<think>c</think> answer", ("answer", "abc", True)),
        ("<think>never ends", ("", "never ends", False)),
        ("said <think>then thought", ("said", "then thought", False)),
        ("<think>a</think>x<think>y", ("x", "a\ny", False)),
        ("<think>\n\n</think>\n\nanswer", ("answer", "", True)),
        ("", ("", "", True)),
    ],
)
def test_thinking_is_split_off(raw: str, parts: tuple[str, str, bool]) -> None:
    assert split_thinking(raw) == parts


@pytest.mark.parametrize(
    "raw",
    [
        "<think>a</think>\n\nRex.",
        "a</think>Rex.",
        "Rex.\n<think>a",
        "<THINK>a</THINK>Rex.",
        "<think>a</think>Re<think>b</think>x.",
        "<thinking>a <think> b</thinking>Rex.",
        "<thought>a</thought>Rex.",
        "<reasoning>a</reasoning>Rex.",
        "<seed:think>a</seed:think>Rex.",
        "[THINK]a[/THINK]Rex.",
        "\u25c1think\u25b7a\u25c1/think\u25b7Rex.",
        "<|START_THINKING|>a<|END_THINKING|>Rex.",
        "<|begin_of_thought|>a<|end_of_thought|>Rex.",
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Rex.",
    ],
)
def test_an_assistants_thoughts_are_left_out(raw: str) -> None:
    assert without_thoughts(raw) == "Rex."


@pytest.mark.parametrize(
    "speech", [" Rex. ", "a < b [1]", "Write <think> before it.", "It ends with </reasoning>, or </thought>.", ""]
)
def test_speech_without_thoughts_is_kept_as_it_is(speech: str) -> None:
    assert without_thoughts(speech) == speech


@pytest.mark.parametrize("unit", ["<think>", "</think>", "<think></think>", "x <think>", "[THINK]<think>"])
def test_leaving_thoughts_out_takes_linear_time(unit: str) -> None:
    assert is_linear(lambda size: unit * (size // len(unit)), without_thoughts, size=1 << 20)


@given(st.text(max_size=80).filter(lambda text: "think>" not in text), ANY_TEXT.filter(lambda t: "think>" not in t))
def test_speech_after_closed_thinking_is_kept_whole(speech: str, thinking: str) -> None:
    assert split_thinking(f"<think>{thinking}</think>{speech}") == (speech.strip(), thinking.strip(), True)


def test_thinking_from_engine_and_text_are_joined() -> None:
    spoken = listen(says("<think>b</think>c", reasoning="a"))
    assert (spoken.text, spoken.reasoning, spoken.finished) == ("c", "a\nb", True)


@pytest.mark.parametrize(
    ("text", "answer", "boxed"),
    [
        (r"\boxed{Lima}", "Lima", True),
        (r"\boxed{a} then \boxed{ b }", "b", True),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", True),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}", True),
        (r"\boxed{a \} b}", r"a \} b", True),
        ("\\boxed\n{x}", "x", True),
        (r"so $\boxed 42$.", "42", True),
        (r"\fbox{x}", "x", True),
        (r"\boxed{a} \fbox{b}", "a", True),
        (r"\boxed{}", "", True),
        (r"\boxed{a} \boxed{cut", r"\boxed{a} \boxed{cut", False),
        (r"\boxedness{a}", r"\boxedness{a}", False),
        ("  plain  ", "plain", False),
        (r"<think>\boxed{no}</think>yes", "yes", False),
        ("", "", False),
    ],
)
def test_answers(text: str, answer: str, boxed: bool) -> None:
    found = parse_answer(says(text))
    assert (found.text, found.boxed) == (answer, boxed)


@given(st.text(st.characters(exclude_characters="{}\\", exclude_categories=("Cs", "Cc"))).map(str.strip))
def test_any_boxed_text_without_braces_is_found(inside: str) -> None:
    assert parse_answer(says(f"I say \\boxed{{{inside}}}.")).text == inside


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("One. Two is hal", "One."),
        ("- one\n- tw", "- one"),
        ("One. Two.", "One. Two."),
        ('He said "go." Then', 'He said "go."'),
        ("<confirmed>One.</confirmed> Two", "<confirmed>One.</confirmed>"),
        ("pi is 3.14 and", "pi is 3.14 and"),
        ("no end at all", "no end at all"),
        ("一。二", "一。"),
        ("", ""),
    ],
)
def test_a_cut_memory_goes_back_to_its_last_complete_line_or_sentence(text: str, kept: str) -> None:
    assert parse_memory(says(text, finish_reason="length")) == kept


def test_a_whole_memory_is_left_as_it_is() -> None:
    assert parse_memory(says(" One. Two is hal ")) == "One. Two is hal"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("", ("sufficient", None)),
        ("<think>enough</think>\n", ("sufficient", None)),
        ("<query>Who is\n Ann?</query>", ("ask", "Who is Ann?")),
        ("<think><query>no</query></think><query>yes</query>", ("ask", "yes")),
        ("<query>a</query><query>b</query>", ("ask", "a")),
        ("Sure: <QUERY>a</QUERY>", ("ask", "a")),
        ("<query>{Who is Ann?}</query>", ("ask", "Who is Ann?")),
        ("<query></query>", ("unusable", None)),
        ("<query>{}</query>", ("unusable", None)),
        ("<query>a", ("unusable", None)),
        ("enough", ("unusable", None)),
        ("<think>hm", ("unusable", None)),
    ],
)
def test_verdicts(text: str, verdict: tuple[str, str | None]) -> None:
    assert parse_query(says(text)) == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("<query>\nWho is\n Ann?\n</query>", ("ask", "Who is\n Ann?")),
        ("<query>{Who is Ann?}</query>", ("ask", "Who is Ann?")),
        ("<query>Ann?</query>", ("unusable", None)),
        ("", ("sufficient", None)),
    ],
)
def test_verdicts_as_published_keep_lines_and_take_a_few_letters_for_no_query(
    text: str, verdict: tuple[str, str | None]
) -> None:
    assert parse_query(says(text), whole=True) == verdict


@pytest.mark.parametrize("finish_reason", ["length", "content_filter", "abort", ""])
def test_silence_counts_only_when_the_model_itself_stopped(finish_reason: str) -> None:
    assert parse_query(says("", finish_reason=finish_reason)) == ("unusable", None)


def test_a_judge_that_calls_a_tool_is_not_silent() -> None:
    assert parse_query(calls_tools(("search_memory", "{}"))) == ("unusable", None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8), JSON, max_size=4))
def test_arguments_survive_every_path(arguments: dict[str, object]) -> None:
    """But for arguments that hold the reply's own tags: of those only the engine's native calls are sure."""
    call = json.dumps({"name": "t", "arguments": arguments})
    assume(not any(tag in call for tag in TAGS))
    native = find_call(calls_tools(("t", json.dumps(arguments))))
    tagged = find_call(says(f"<think>x</think><tool_call>\n{call}\n</tool_call>"))
    bare = find_call(says(call))
    for found in (native, tagged, bare):
        assert isinstance(found, FoundCall)
        assert found.arguments == arguments


@given(st.integers(min_value=1, max_value=60))
def test_a_call_cut_anywhere_is_no_call(kept: int) -> None:
    call = '{"name": "ignore_memory", "arguments": {"reason": "small talk, nothing else"}}'
    assert isinstance(find_call(says(f"<tool_call>{call[:kept]}", finish_reason="length")), NoCall)


def test_bare_json_counts_in_prose_and_never_in_thinking() -> None:
    call = '{"name": "ignore_memory", "arguments": {"reason": "x"}}'
    found = find_call(says(f"Of the talk {{about a dog}} I keep nothing:\n```json\n{call}\n```"))
    assert found == FoundCall("ignore_memory", {"reason": "x"}, "fallback")
    assert isinstance(find_call(says(f"<think>{call}</think>")), NoCall)


@pytest.mark.parametrize(
    ("python", "given"),
    [
        ("[{1: 'a'}]", [{"1": "a"}]),
        ("{2: 'a', None: 'b'}", {"2": "a", "null": "b"}),
        ("{'a'}", ["a"]),
        ("('a', 1)", ["a", 1]),
    ],
)
def test_arguments_in_python_become_json(python: str, given: object) -> None:
    found = find_call(says(f"add_memory(memory_list={python})"))
    assert isinstance(found, FoundCall)
    assert found.arguments == {"memory_list": given}


@pytest.mark.parametrize("python", ["{(1, 2): 'a'}", "{[]: 1}", "b'a'", "..."])
def test_arguments_in_python_that_json_has_no_place_for_are_no_call(python: str) -> None:
    assert isinstance(find_call(says(f"add_memory(summary={python})")), NoCall)
