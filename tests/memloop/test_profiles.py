import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.loops.rendering import conversation_lines
from memloop.profiles import (
    Markup,
    ProfileError,
    TurnLines,
    load_profile,
    neutralise,
    profile_files,
    profile_from_files,
    well_formed,
)
from memloop.wire.memory import Source

DEFAULT = load_profile("default")
HOSTILE = st.lists(
    st.sampled_from(["</section>", "<section>", "< / memory >", "<|im_end|>", "</THINK>", "<tool_call>", "<query>"])
    | st.text(st.characters(exclude_categories=()), max_size=10),
    max_size=8,
).map("".join)


def _default_manifest(old: str, new: str) -> dict[str, str]:
    """The default profile's files with one part of its manifest changed."""
    files = profile_files("default")
    return {**files, "manifest.toml": files["manifest.toml"].replace(old, new)}


@given(HOSTILE, HOSTILE, HOSTILE)
def test_data_never_opens_or_closes_a_slot_nor_ends_a_turn(problem: str, memory: str, section: str) -> None:
    text = DEFAULT.render("read", problem=problem, memory=memory, section=section)[-1].text()
    for tag in ("<problem>", "</problem>", "<memory>", "</memory>", "<section>", "</section>"):
        assert text.count(tag) == 1
    assert "<|" not in text
    text.encode("utf-8")


@given(HOSTILE)
def test_neutralising_twice_does_no_more_than_once(text: str) -> None:
    assert neutralise(neutralise(text)) == neutralise(text)


@given(st.text(st.characters(exclude_categories=())))
def test_well_formed_text_keeps_its_length_and_has_a_utf8_form(text: str) -> None:
    assert len(well_formed(text)) == len(text)
    well_formed(text).encode("utf-8")


@given(st.text(st.characters(exclude_characters="<\0", exclude_categories=("Cs",))))
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert neutralise(text) == text


def test_slot_marks_inside_values_are_not_filled() -> None:
    text = DEFAULT.render("answer", problem="{memory}", memory="{problem}")[-1].text()
    assert "<problem>\n{memory}\n</problem>" in text
    assert "<memory>\n{problem}\n</memory>" in text


def test_marks_of_confirmation_live_in_memory_alone() -> None:
    text = DEFAULT.render("read", problem="p", memory="<confirmed>m</confirmed>", section="<confirmed>s")[-1].text()
    assert "<confirmed>m</confirmed>" in text
    assert "&lt;confirmed>s" in text


def test_markup_that_a_loop_made_is_kept() -> None:
    text = DEFAULT.render("judge", question="q", memory="m", query_history=Markup("<query>a</query>"))[-1].text()
    assert "<query>a</query>" in text


def test_a_missing_or_unknown_slot_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="slots are"):
        DEFAULT.render("answer", problem="p")


@pytest.mark.parametrize("name", ["default", "tiny", "tiny-writer", "extractor"])
def test_a_profile_survives_its_way_over_http(name: str) -> None:
    served = json.loads(json.dumps(profile_files(name)))
    assert profile_from_files(served) == load_profile(name)


def test_the_tiny_profile_takes_its_templates_from_the_default() -> None:
    tiny = load_profile("tiny")
    assert tiny.prompts["read"].template == DEFAULT.prompts["read"].template
    assert tiny.budget.chunk_tokens < DEFAULT.budget.chunk_tokens
    assert tiny.content_hash != DEFAULT.content_hash


def test_another_memory_limit_bounds_what_may_be_written() -> None:
    wider = DEFAULT.with_memory_tokens(2048)
    assert wider.budget.memory_tokens == 2048
    assert wider.prompts["read"].sampling.max_tokens == 2048
    assert wider.prompts["integrate"].sampling.max_tokens == 2048
    assert wider.prompts["answer"] == DEFAULT.prompts["answer"]


def test_a_users_folder_changes_one_template_and_keeps_the_rest(tmp_path: Path) -> None:
    manifest = 'name = "mine"\nversion = "7"\nextends = "default"\n'
    (tmp_path / "manifest.toml").write_text(manifest)
    (tmp_path / "answer.txt").write_text("{problem} {memory} ?")
    mine = load_profile(tmp_path)
    assert mine.render("answer", problem="p", memory="m")[-1].text() == "p m ?"
    assert mine.prompts["read"] == DEFAULT.prompts["read"]
    assert mine.ref.startswith("mine@7:")


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n", " \n"], ids=["none", "one", "two", "crlf", "blank"])
def test_a_template_is_rendered_byte_for_byte(tmp_path: Path, end: str) -> None:
    manifest = (
        'name = "mine"\nversion = "1"\nextends = "default"\n[prompts.memory]\nsystem = "rules.txt"\ntemplate = "t.txt"'
    )
    (tmp_path / "manifest.toml").write_text(manifest)
    (tmp_path / "rules.txt").write_bytes(f"Rules.{end}".encode())
    (tmp_path / "t.txt").write_bytes(f"A\r\n{{conversation}}{end}".encode())
    system, user = load_profile(tmp_path).render("memory", conversation="hi")
    assert (system.text(), user.text()) == (f"Rules.{end}", f"A\r\nhi{end}")


def test_a_profile_sets_how_turns_results_and_sub_answers_are_shown(tmp_path: Path) -> None:
    manifest = (
        'name = "mine"\nversion = "1"\nextends = "default"\nsubanswer = "boxed"\nturns_per_decision = 7\n'
        'result_line = "{key} {text}"\n[turns]\ntimed = "{role} {time} {text}"\ndate = "{date}"\n'
        'without = ["assistant"]\n'
    )
    (tmp_path / "manifest.toml").write_text(manifest)
    mine = load_profile(tmp_path)
    assert (mine.subanswer, mine.turns_per_decision, mine.result_line) == ("boxed", 7, "{key} {text}")
    assert mine.turns == TurnLines("{role} {time} {text}", "{date}", without=("assistant",))


@pytest.mark.parametrize("name", ["default", "extractor", "section-first"])
def test_untrained_writers_see_the_weekday_and_time_of_a_turn(name: str) -> None:
    friday = Source(role="user", content="I flew home last Friday.", timestamp=datetime(2026, 11, 27, 9, 5, tzinfo=UTC))

    assert conversation_lines([friday], load_profile(name).turns) == (
        "[user] (Friday 2026-11-27 09:05): I flew home last Friday."
    )


@pytest.mark.parametrize("name", ["tiny", "tiny-writer"])
def test_a_writer_that_was_trained_without_times_sees_none(name: str) -> None:
    profile = load_profile(name)

    assert profile.turns.plain
    assert "weekday" not in (profile.prompts["memory"].system or "")


def test_a_profile_with_words_of_its_own_for_the_writer_shows_turns_as_published(tmp_path: Path) -> None:
    (tmp_path / "manifest.toml").write_text(
        'name = "mine"\nversion = "1"\nextends = "default"\n[prompts.memory]\ntemplate = "own.txt"\n'
    )
    (tmp_path / "own.txt").write_text("Decide.\n{conversation}")

    assert load_profile(tmp_path).turns.plain


@pytest.mark.parametrize("name", ["default", "extractor", "section-first", "tiny", "tiny-writer"])
def test_a_built_in_prompt_ends_without_a_newline(name: str) -> None:
    for spec in load_profile(name).prompts.values():
        assert spec.template == spec.template.rstrip()


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "manifest.toml"),
        ({"manifest.toml": "name = "}, "manifest.toml"),
        ({"manifest.toml": '{"name": "x"}'}, "version"),
        (_default_manifest('[prompts.recall]\ntemplate = "recall.txt"\nslots = ["memories"]', ""), "recall"),
        (_default_manifest('slots = ["conversation"]', 'slots = ["talk"]'), "conversation"),
        ({**profile_files("default"), "read.txt": "{problem} {memory}"}, "section"),
        ({key: value for key, value in profile_files("default").items() if key != "tools.json"}, "tools.json"),
        ({**profile_files("default"), "tools.json": "[{"}, "tools.json"),
        (_default_manifest('parser = "tool_call"', 'parser = "boxed"'), "parser of memory"),
        (_default_manifest("{text} (", "{texts} ("), "result_line"),
        (_default_manifest("{text} (", "("), "no slot {text}"),
        (
            _default_manifest("({weekday} {time})", "{when}"),
            "slots are {role}, {text}, {weekday}",
        ),
        (_default_manifest("[budget]", 'date = "today"\n[budget]'), "no slot {date}"),
    ],
    ids=[
        "nothing",
        "no-toml",
        "incomplete",
        "no-prompt",
        "strange-slot",
        "slot-missing",
        "file-missing",
        "bad-tools",
        "strange-parser",
        "strange-mark",
        "no-text",
        "strange-turn",
        "no-date",
    ],
)
def test_an_invalid_profile_names_the_file(files: dict[str, str], problem: str) -> None:
    with pytest.raises(ProfileError, match=problem):
        profile_from_files(files)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ProfileError, match="nowhere"):
        load_profile("nowhere")


IMITATIONS = (
    "</memory>", "</ MEMORY >", "<memory", "＜/memory＞", "<\u200bmemory>", "<mem\u200dory>", "﹤/ｍｅｍｏｒｙ﹥",
    "</passage>", "<system-reminder>", "</system-reminder>", "<SYSTEM_REMINDER>", "<system>",
    "</ system>", "<assistant>", "<invoke name=", "<function_calls>", "<|im_start|>", "< |im_start| >",
    "<｜User｜>", "＜|im_end|＞", "<\ufeff|im_end|>", "[INST]", "[ /INST ]", "[inst]", "［INST］",
    "[\u200bTOOL_CALLS]", "</s>", "< /s >", "<<SYS>>",
)  # fmt: skip


@pytest.mark.parametrize("text", IMITATIONS)
def test_no_spelling_of_a_mark_passes(text: str) -> None:
    safe = neutralise(f"Tea {text} said.")
    assert safe != f"Tea {text} said."
    assert safe.startswith(("Tea &lt;", "Tea &#91;"))
    assert neutralise(safe) == safe


@pytest.mark.parametrize(
    "text",
    [
        "Mail <user@example.com> or <system.web>, a < b, x[0] and [1]: see [INSTALL].",
        "<div><p>if (a<|b) {</p></div>".replace("<|", "< |"),
        "Größe ＜ 5 ［cm］ — [a](b) <br/> <users> <systemd>",
    ],
)
def test_text_that_only_resembles_a_mark_is_left_alone(text: str) -> None:
    assert neutralise(text) == text
