"""Published prompts come out of a user's own copy, byte for byte, or not at all."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from inference.profile_import.imported import Kind
from inference.profile_import.importing import import_prompts, write_profile
from inference.profile_import.sources import ImportRefused
from memloop.loops.rendering import conversation_lines
from memloop.profiles import Markup, Profile, ProfileError, load_profile
from memloop.wire.chat import Json
from memloop.wire.memory import Source
from tests.fakes.processes import PATIENCE_S, clean_environment
from tests.fakes.published_sources import (
    CARD,
    CARD_OF_EXAMPLES,
    MEMAGENT,
    MEMOS_READER,
    PLAIN_ENDING,
    PROMPTS,
    TICKS,
    TOOLS,
    write_card,
    write_memagent,
    write_memos_reader,
    write_memreread,
)

Message = list[dict[str, str]]


def imported(kind: Kind, source: Path) -> Profile:
    target = source.parent / "profile"
    write_profile(import_prompts(kind, source), target)
    return load_profile(target)


def sent(profile: Profile, prompt: str, **values: str) -> Message:
    return [{"role": each.role, "content": each.text()} for each in profile.render(prompt, **values)]  # type: ignore[arg-type]


def write_boxed(folder: Path) -> Path:
    """The profile that the same checkout's training prompts make."""
    write_profile(import_prompts("memagent", folder / "checkout"), folder / "boxed")
    return folder / "boxed"


def run_by_python(source: str) -> dict[str, object]:
    """What the made-up source is once it ran."""
    names: dict[str, object] = {}
    exec(compile(source, "made-up", "exec"), names)
    return names


def run_card(card: str) -> dict[str, object]:
    """What the card's own Python makes."""
    page = card.replace("\r\n", "\n")  # as Python itself reads a source
    return run_by_python("\n".join(block.split(TICKS)[0] for block in page.split(f"{TICKS}python\n")[1:]))


def test_a_card_is_imported_byte_for_byte(tmp_path: Path) -> None:
    profile = imported("memreader-card", write_card(tmp_path / "snapshot"))
    made = run_card(CARD)
    assert sent(profile, "memory", conversation=cast(str, made["conversation"])) == made["messages"]


def test_a_cards_tools_keep_their_order_and_wording(tmp_path: Path) -> None:
    profile = imported("memreader-card", write_card(tmp_path / "snapshot"))
    tools = run_card(CARD)["tools"]
    assert list(profile.prompts["memory"].tools) == tools
    assert repr(list(profile.prompts["memory"].tools)) == repr(tools)  # the order of every key


def test_a_card_with_dos_line_ends_sends_what_python_sends(tmp_path: Path) -> None:
    card = CARD.replace("\n", "\r\n")
    profile = imported("memreader-card", write_card(tmp_path / "snapshot", card))
    made = run_card(card)
    assert sent(profile, "memory", conversation=cast(str, made["conversation"])) == made["messages"]


def test_a_card_may_show_its_request_as_json_and_its_system_text_as_it_is(tmp_path: Path) -> None:
    tools = CARD.split(f"{TICKS}python\n")[1].split(TICKS)[0]
    system = "Keep notes.\r\n\r\n  One action a turn.  \r\n"
    request = '{"messages": [{"role": "user", "content": "Decide:\\r\\n\\r\\n[user]: Hi\\n[assistant]: Hello\\n\\n"}]}'
    card = (
        f"# Card\r\n\r\n{TICKS}py\n{tools}{TICKS}\r\n\r\n## System prompt\r\n\r\n~~~\r\n{system}\r\n~~~\r\n"
        f"\r\n{TICKS}json\r\n{request}\r\n{TICKS}\r\n"
    )
    profile = imported("memreader-card", write_card(tmp_path / "snapshot", card))
    assert sent(profile, "memory", conversation="[user]: X") == [
        {"role": "system", "content": system},
        {"role": "user", "content": "Decide:\r\n\r\n[user]: X\n\n"},
    ]


def test_a_user_text_beside_a_system_text_goes_before_one_that_stands_alone(tmp_path: Path) -> None:
    alone = f'{TICKS}py\nm = [{{"role": "user", "content": "Or:\\n\\n[user]: Hi"}}]\n{TICKS}\n'
    card = CARD.replace("## Serve", alone)
    profile = imported("memreader-card", write_card(tmp_path / "snapshot", card))
    assert sent(profile, "memory", conversation="X")[1]["content"].startswith("Decide about this")


def test_of_several_examples_the_request_that_names_the_four_tools_is_the_prompt(tmp_path: Path) -> None:
    profile = imported("memreader-card", write_card(tmp_path / "snapshot", CARD_OF_EXAMPLES))
    tools = "- search_memory\n- add_memory\n- buffer_memory\n- ignore_memory"
    assert sent(profile, "memory", conversation="[user]: X") == [
        {"role": "system", "content": f"Keep notes.\n{tools}"},
        {"role": "user", "content": "Judge this talk:\n\n[user]: X"},
    ]


@pytest.mark.parametrize("first", [True, False], ids=["the-request-first", "the-request-last"])
def test_the_user_text_and_the_tools_are_those_of_the_chosen_request(tmp_path: Path, first: bool) -> None:
    head, request, other, *rest = CARD_OF_EXAMPLES.split("\n## ")
    other = other.replace("Judge this", "Look at this").replace("Does it.", "Does that.")
    card = "\n## ".join([head, *([request, other] if first else [other, request]), *rest])
    profile = imported("memreader-card", write_card(tmp_path / "snapshot", card))
    assert sent(profile, "memory", conversation="X")[1]["content"] == "Judge this talk:\n\nX"
    assert "Does it." in repr(profile.prompts["memory"].tools)


def test_two_requests_that_name_the_four_tools_in_other_words_are_refused(tmp_path: Path) -> None:
    card = CARD_OF_EXAMPLES.replace("a few words.", "search_memory add_memory buffer_memory ignore_memory.")
    told = refusal("memreader-card", write_card(tmp_path / "snapshot", card))
    assert "expected one system text; found 2 that differ" in told


def test_the_command_names_the_texts_that_it_left(tmp_path: Path) -> None:
    source = write_card(tmp_path / "snapshot", CARD_OF_EXAMPLES)
    status, out, _ = command("memreader-card", "--from", str(source), "--to", str(tmp_path / "profile"))
    assert status == 0
    line = CARD_OF_EXAMPLES[: CARD_OF_EXAMPLES.index("import torch")].count("\n")
    assert f"left  system text of 26 bytes, line {line}\n" in out


def test_memagent_is_imported_byte_for_byte(tmp_path: Path) -> None:
    profile = imported("memagent", write_memagent(tmp_path / "checkout"))
    constants = run_by_python(MEMAGENT[MEMAGENT.index("TEMPLATE =") : MEMAGENT.index("SIZE =")])
    read, final = cast(str, constants["TEMPLATE"]), cast(str, constants["TEMPLATE_FINAL"])
    assert sent(profile, "read", problem="P", memory="M", section="S")[0]["content"] == read.format(
        prompt="P", memory="M", chunk="S"
    )
    assert sent(profile, "answer", problem="P", memory="M")[0]["content"] == final.format(prompt="P", memory="M")
    assert profile.empty_memory == constants["NO_MEMORY"]


def test_the_prompts_of_memagents_tables_ask_for_an_answer_in_words(tmp_path: Path) -> None:
    profile = imported("memagent-table", write_memagent(tmp_path / "checkout"))
    asked = sent(profile, "answer", problem="P", memory="M")[0]["content"]
    assert asked.startswith(PLAIN_ENDING)
    assert profile.prompts["answer"].parser == "words"
    boxed = load_profile(write_boxed(tmp_path))
    assert sent(profile, "read", problem="P", memory="M", section="S") == sent(
        boxed, "read", problem="P", memory="M", section="S"
    )


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "dos"])
def test_memreread_is_imported_byte_for_byte(tmp_path: Path, ends: str) -> None:
    checkout = write_memreread(tmp_path / "checkout", PROMPTS.replace("\n", ends), TOOLS.replace("\n", ends))
    profile = imported("memreread", checkout)
    made = run_by_python(PROMPTS + TOOLS.partition("\n")[2])

    def theirs(function: str, *values: object) -> Message:
        return cast(Callable[..., Message], made[function])(*values)

    history = Markup("<query>Who?</query> <result>Ann</result>")
    assert sent(profile, "read", problem="P", memory="M", section="S") == theirs(
        "get_reading_messages", "P", "", "M", "S"
    )
    assert sent(profile, "answer", problem="P", memory="M") == theirs("get_answering_messages", "P", "M")
    assert sent(profile, "judge", question="Q", memory="M", query_history=history) == theirs(
        "get_progress_or_answer_messages", [], "Q", "M", [{"question": "Who?", "answer": "Ann"}]
    )
    assert sent(profile, "judge", question="Q", memory="M", query_history=profile.no_history) == theirs(
        "get_progress_or_answer_messages", [], "Q", "M", []
    )
    assert sent(profile, "integrate", question="Q", memory="M", subquestion="S", subanswer="A") == theirs(
        "get_integrating_messages", "Q", "M", "", "S", "A"
    )
    assert profile.prompts["judge"].sampling.max_tokens == 8192


def test_memos_readers_prompt_is_one_user_message_with_times_in_memos_own_lines(tmp_path: Path) -> None:
    profile = imported("memos-reader", write_memos_reader(tmp_path / "checkout"))
    said_at = datetime(2026, 1, 31, 14, 5, tzinfo=UTC)
    turns = [Source(role="user", content="I moved.", timestamp=said_at), Source(role="assistant", content="Where?")]
    lines = conversation_lines(turns, profile.turns)
    own = cast(str, run_by_python(MEMOS_READER)["SIMPLE_STRUCT_MEM_READER_PROMPT"])
    expected = own.replace("${custom_tags_prompt}", "").replace("${conversation}", lines)
    assert sent(profile, "memory", conversation=lines) == [{"role": "user", "content": expected}]
    assert lines.splitlines()[0] == "user: [2026-01-31 14:05]: I moved."
    asked = profile.prompts["memory"]
    assert (asked.sampling.temperature, asked.sampling.top_p, asked.sampling.max_tokens) == (0.6, 0.95, 8000)
    assert (asked.parser, asked.tools, asked.thinking) == ("memory_list", (), False)


@pytest.mark.parametrize("slot", ["${conversation}", "${custom_tags_prompt}"])
def test_a_changed_reader_of_memos_is_refused(tmp_path: Path, slot: str) -> None:
    with pytest.raises(ImportRefused, match="each once; found"):
        import_prompts("memos-reader", write_memos_reader(tmp_path, MEMOS_READER.replace(slot, "none")))


def test_published_numbers_do_not_move_with_our_defaults(tmp_path: Path) -> None:
    writer = imported("memreader-card", write_card(tmp_path / "one" / "snapshot")).prompts["memory"]
    assert (writer.sampling.max_tokens, writer.sampling.temperature) == (1024, 0.2)
    assert (writer.thinking, writer.tool_choice) == (True, "required")
    manifest = (tmp_path / "one" / "profile" / "manifest.toml").read_text()
    assert "temperature = 0.2\nthinking = true\n" in manifest
    reader = imported("memreread", write_memreread(tmp_path / "two" / "checkout"))
    limits = {name: reader.prompts[name].sampling.max_tokens for name in ("read", "answer", "judge", "integrate")}  # type: ignore[index]
    assert limits == {"read": 1024, "answer": 1024, "judge": 8192, "integrate": 1024}
    assert "chunk_tokens = 5000\n" in (tmp_path / "two" / "profile" / "manifest.toml").read_text()


def test_an_imported_writer_is_not_asked_to_relate_memories_unless_its_operator_wants_it(tmp_path: Path) -> None:
    published = imported("memreader-card", write_card(tmp_path / "snapshot"))
    manifest = tmp_path / "profile" / "manifest.toml"
    manifest.write_text(manifest.read_text().replace('without = ["relate"]', "without = []"))
    wanted = load_profile(tmp_path / "profile")
    assert wanted.prompts.keys() - published.prompts.keys() == {"relate"}
    assert wanted.origin == published.origin


def test_a_profile_names_its_sources_and_refuses_a_text_that_was_edited(tmp_path: Path) -> None:
    source = write_memagent(tmp_path / "checkout")
    profile = imported("memagent", source)
    name = "taskutils/memory_eval/utils/recurrent_boxed.py"
    assert profile.origin is not None
    assert profile.origin.sources == {name: hashlib.sha256((source / name).read_bytes()).hexdigest()}
    read = tmp_path / "profile" / "read.txt"
    read.write_bytes(read.read_bytes().removesuffix(b"\n"))
    with pytest.raises(ProfileError, match=r"read\.txt is not the text that was imported from taskutils"):
        load_profile(tmp_path / "profile")


def test_a_profile_that_extends_an_imported_one_is_not_the_published_one(tmp_path: Path) -> None:
    imported("memagent", write_memagent(tmp_path / "checkout"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "read.txt").write_text("{problem} {memory} {section}")
    (tmp_path / "mine" / "manifest.toml").write_text(f'extends = "{tmp_path / "profile"}"\nname = "mine"\n')
    profile = load_profile(tmp_path / "mine")
    assert (profile.name, profile.origin, profile.empty_memory) == ("mine", None, "Nothing noted yet")


def test_an_archive_of_an_imported_profile_is_the_same_profile(tmp_path: Path) -> None:
    profile = imported("memreader-card", write_card(tmp_path / "snapshot"))
    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path, "profile")
    assert load_profile(archive) == profile


def refusal(kind: Kind, source: Path) -> str:
    with pytest.raises(ImportRefused) as refused:
        import_prompts(kind, source)
    return str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("{chunk}", "{passage}", "TEMPLATE: expected the slots chunk, memory, prompt; found {passage}"),
        ("{chunk}", "the page", "TEMPLATE: expected the slots chunk, memory, prompt; found only memory, prompt"),
        ("{chunk}", "{chunk:>9}", "; found {chunk:>9}"),
        ("{chunk}", "{chunk.__class__}", "; found {chunk.__class__}"),
        ("{chunk}", "{chunk", "expected a format string; found one that is broken"),
        ("{chunk}", "{chunk} {{section}}", "expected a text without slots of ours"),
        (
            "TEMPLATE_FINAL =",
            "FINAL_TEMPLATE =",
            "expected the text TEMPLATE_FINAL; found FINAL_TEMPLATE, NO_MEM",
        ),
        ('NO_MEMORY = "Nothing noted yet"', "NO_MEMORY = load()", "expected the text NO_MEMORY"),
        ("SIZE = int", 'if len(os.environ) > 9:\n    NO_MEMORY = "None"\nSIZE = int', "expected the text NO_MEMORY"),
        ("SIZE = int", "from utils import NO_MEMORY\nSIZE = int", "expected the text NO_MEMORY"),
        ("import os", "import os(", "expected Python; found a source that cannot be parsed"),
    ],
)
def test_a_changed_module_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in MEMAGENT
    told = refusal("memagent", write_memagent(tmp_path / "checkout", MEMAGENT.replace(old, new)))
    assert "taskutils/memory_eval/utils/recurrent_boxed.py" in told
    assert reason in told


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<query>{x['question']}", "<q>{x['question']}", "expected lines <query>…</query> <result>…</result>"),
        ("def get_progress", "def progress", "expected one function of this name; found 0"),
        ('history_str = "NOTHING ASKED"', "history_str = NOTHING", "one text for an empty history; found 0"),
    ],
)
def test_a_changed_history_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in TOOLS
    told = refusal("memreread", write_memreread(tmp_path / "checkout", tools=TOOLS.replace(old, new)))
    assert told.startswith("recursive/tools.py")
    assert reason in told


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"ignore_memory"', '"forget_memory"', "expected one list of the tools add_memory, buffer_memory"),
        ('{"role": "system", "content": SYSTEM_PROMPT},', "", "expected one system text; found none in 3 blocks"),
        ('"You keep notes.\\n"', "prompt_of(model)", "expected one system text; found none"),
        ('"You keep notes.\\n"', 'f"Today is {today()}.\\n"', "; found one that an expression completes"),
        ("[user]: My", "User: My", "expected one user text with a conversation of [role]: lines; found none"),
        ("[assistant]: Noted.", "Noted.", "expected one user text with a conversation"),
        ("conversation = ", "SYSTEM_PROMPT, _ = load()\nconversation = ", "expected one system text; found none"),
        ("conversation = ", "from prompts import SYSTEM_PROMPT\nconversation = ", "one system text; found none"),
        (f"{TICKS}python", f"{TICKS}ruby", "found none in 3 blocks (ruby, bash)"),
        ("Guidelines:", "Guidelines: \\ud800", "found one with a lone surrogate"),
        (
            "## Serve",
            f'{TICKS}py\nm = [{{"role": "system", "content": "Other."}}]\n{TICKS}\n',
            "; found 2 that differ",
        ),
        (
            "## Serve",
            f"{TICKS}py\na = 'x' * 9\na = 'abcdefgh'\n" + "a = a + a\n" * 40 + f"{TICKS}\n",
            "more than 1048576",
        ),
    ],
)
def test_a_changed_card_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in CARD
    told = refusal("memreader-card", write_card(tmp_path / "snapshot", CARD.replace(old, new)))
    assert told.startswith("README.md")
    assert reason in told


def test_a_source_is_never_run(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    imported("memagent", write_memagent(tmp_path / "checkout", trap + MEMAGENT))
    assert not (tmp_path / "ran").exists()


def test_what_is_not_a_small_file_of_the_snapshot_is_refused(tmp_path: Path) -> None:
    snapshot, outside = tmp_path / "snapshot", write_card(tmp_path / "outside") / "README.md"
    assert "expected a folder with README.md; found none" in refusal("memreader-card", snapshot)
    snapshot.mkdir()
    card = snapshot / "README.md"
    assert f"{card}: expected this file; found none" in refusal("memreader-card", snapshot)
    card.symlink_to(outside)
    assert "found a link that leads out of it" in refusal("memreader-card", snapshot)
    card.unlink()
    card.mkdir()
    assert "found a folder or a device" in refusal("memreader-card", snapshot)
    card.rmdir()
    card.write_bytes(CARD.encode() + b"\xff")
    assert f"expected UTF-8 text; found invalid start byte at byte {len(CARD.encode())}" in refusal(
        "memreader-card", snapshot
    )
    card.write_bytes(CARD.encode() + b" " * (1 << 20))
    assert "expected at most 1048576 bytes; found more" in refusal("memreader-card", snapshot)


def test_the_links_of_a_hub_cache_are_followed(tmp_path: Path) -> None:
    cache = tmp_path / "models--example--note"
    write_card(cache / "blobs")
    (cache / "snapshots" / "abc").mkdir(parents=True)
    (cache / "snapshots" / "abc" / "README.md").symlink_to("../../blobs/README.md")
    assert import_prompts("memreader-card", cache / "snapshots" / "abc").kind == "memreader-card"


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    deep = "a = []\n" + "a = [a]\n" * 5000
    card = CARD.replace("## Serve", f"{TICKS}python\n{deep}{TICKS}\n")
    assert "nesting without end" in refusal("memreader-card", write_card(tmp_path / "snapshot", card))


def test_nothing_is_written_over_and_nothing_half(tmp_path: Path) -> None:
    source = write_memagent(tmp_path / "checkout")
    found = import_prompts("memagent", source)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for target in (tmp_path / "taken", tmp_path / "link", tmp_path / "taken" / "mine.txt"):
        with pytest.raises(ImportRefused, match="expected a new or an empty folder"):
            write_profile(found, target)
    with pytest.raises(ImportRefused, match="cannot be written"):
        write_profile(found, tmp_path / "taken" / "mine.txt" / "profile")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkout", "link", "taken"]


def command(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "inference.main", "profile", "import", *arguments],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_prints_what_it_took_and_refuses_with_status_2(tmp_path: Path) -> None:
    source = write_memreread(tmp_path / "checkout")
    status, out, _ = command("memreread", "--from", str(source), "--to", str(tmp_path / "new" / "profile"))
    assert status == 0
    assert "judge.txt" in out
    assert load_profile(tmp_path / "new" / "profile").ref in out
    status, out, err = command("memagent", "--from", str(source), "--to", str(tmp_path / "other"))
    assert (status, out) == (2, "")
    assert err.startswith(f"not imported: {source}/taskutils/memory_eval/utils/recurrent_boxed.py: expected this file")


def test_a_manifest_with_odd_texts_is_still_toml(tmp_path: Path) -> None:
    odd = r'NO_MEMORY = "a \"quote\", \\ a slash, \x7f, \x01, 😀,\nand a line"'
    module = MEMAGENT.replace('NO_MEMORY = "Nothing noted yet"', odd)
    profile = imported("memagent", write_memagent(tmp_path / "checkout", module))
    assert profile.empty_memory == 'a "quote", \\ a slash, \x7f, \x01, 😀,\nand a line'


def test_tools_keep_an_order_that_sorting_would_change(tmp_path: Path) -> None:
    profile = imported("memreader-card", write_card(tmp_path / "snapshot"))
    names = [cast(Json, tool["function"])["name"] for tool in profile.prompts["memory"].tools]
    assert names == ["ignore_memory", "add_memory", "search_memory", "buffer_memory"]
