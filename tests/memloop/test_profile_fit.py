"""A profile and a served model that do not fit are told so, with the numbers."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.profiles import Profile, ProfileError, check_fit, fit, load_profile, sizes
from memloop.profiles.fit import OwnTokenizer
from tests.fakes.windowed_engine import tokenizer_json
from tests.memloop.tokenizers_of_tests import byte_level_bpe

TINY = load_profile("tiny")
SHIPPED = Path("services/inference/models/memloop-tiny/tokenizer.json")


def tokenizer() -> TokenizerSplitter:
    return TokenizerSplitter(byte_level_bpe())


def with_template(template: str) -> Profile:
    return replace(TINY, prompts={**TINY.prompts, "answer": replace(TINY.prompts["answer"], template=template)})


def test_the_shipped_model_and_its_profile_fit() -> None:
    check_fit(TINY, TokenizerSplitter(SHIPPED.read_bytes()), window_tokens=1024)


def test_a_control_token_inside_a_template_is_named() -> None:
    with pytest.raises(ProfileError, match=r"the prompt answer holds the model's control tokens <\|im_end\|>"):
        check_fit(with_template("{problem}<|im_end|>{memory}"), tokenizer(), window_tokens=1024)


def test_a_window_too_small_for_any_use_is_refused_with_the_sum() -> None:
    default = load_profile("default")
    with pytest.raises(ProfileError) as refusal:
        check_fit(default, EstimatingSplitter(), window_tokens=512)
    found = re.search(
        r"prompt memory needs template (\d+) \+ reply 1024 = (\d+) tokens, and the window has 512", str(refusal.value)
    )
    assert found is not None
    assert int(found[2]) == int(found[1]) + 1024


def longest(profile: Profile, count: Callable[[str], int]) -> dict[str, int]:
    """The tokens of each reading prompt with full slots, its reply, and a chat template of 16 tokens."""
    budget, reply = profile.budget, {name: spec.sampling.max_tokens for name, spec in profile.prompts.items()}
    own = {name: count(spec.template) + count(spec.system or "") + 16 for name, spec in profile.prompts.items()}
    question, memory, chunk = budget.question_tokens, budget.memory_tokens, budget.chunk_tokens
    return {
        "read": own["read"] + question + memory + chunk + reply["read"],
        "answer": own["answer"] + question + memory + reply["answer"],
        "judge": own["judge"] + question + memory + reply["judge"],
        "integrate": own["integrate"] + question + memory + reply["judge"] + reply["answer"] + reply["integrate"],
    }


@pytest.mark.parametrize("tokens", [2048, 3000, 4096, 6000])
@pytest.mark.parametrize(
    "tokenizer", [EstimatingSplitter(), TokenizerSplitter(tokenizer_json())], ids=["estimate", "tokenizer"]
)
def test_the_default_profile_is_made_to_fit_a_smaller_window(tokenizer: OwnTokenizer, tokens: int) -> None:
    fitted = fit(load_profile("default"), tokenizer, window_tokens=tokens)
    assert {name: size for name, size in longest(fitted, tokenizer.count_own).items() if size > tokens} == {}
    assert fitted.budget.chunk_tokens > tokens // 2.2
    assert min(fitted.budget.memory_tokens, fitted.budget.question_tokens) > tokens // 12
    assert fitted.budget.window_tokens == tokens


@pytest.mark.parametrize("tokens", [2048, 4096])
def test_the_memory_writer_keeps_a_quarter_of_a_small_window_for_the_conversation(tokens: int) -> None:
    fitted, count = (
        fit(load_profile("default"), EstimatingSplitter(), window_tokens=tokens),
        EstimatingSplitter().count_own,
    )
    spec = fitted.prompts["memory"]
    own = count(spec.template) + count(spec.system or "") + count("".join(map(json.dumps, spec.tools)))
    assert own + spec.sampling.max_tokens + tokens // 4 <= tokens
    assert spec.sampling.max_tokens >= tokens // 4


@pytest.mark.parametrize("template_tokens", [100, 132, 600])
def test_the_published_sizes_stay_in_the_published_window(template_tokens: int) -> None:
    default = load_profile("default")
    own = TokenizerSplitter(byte_level_bpe())
    begin = "{problem}{memory}{section}"
    sizes_of = [own.count_own(begin + " word" * count) for count in range(0, 700, 4)]
    fits = 4 * (bisect_right(sizes_of, template_tokens - 16) - 1)
    read = replace(default.prompts["read"], template=begin + " word" * fits)
    fitted = fit(replace(default, prompts={**default.prompts, "read": read}), own, window_tokens=8192)
    assert fitted.budget == default.budget
    assert fitted.prompts["read"].sampling.max_tokens == 1024


def test_a_larger_window_takes_longer_questions_and_leaves_the_sections_alone() -> None:
    default = load_profile("default")
    fitted = fit(default, EstimatingSplitter(), window_tokens=131_072)
    assert (fitted.budget.chunk_tokens, fitted.budget.memory_tokens) == (5000, 1024)
    assert (fitted.budget.question_tokens, fitted.budget.most_tokens) == (16_384, 131_072)
    assert fitted.prompts == default.prompts


def test_a_profile_in_its_own_window_is_itself() -> None:
    for name in ("default", "small", "tiny", "extractor", "section-first"):
        profile = load_profile(name)
        assert fit(profile, EstimatingSplitter(), window_tokens=profile.budget.window_tokens) == profile


def test_the_line_of_sizes_names_what_differs_from_the_profile() -> None:
    default = load_profile("default")
    assert "not" not in sizes(default, default)
    line = sizes(fit(default, EstimatingSplitter(), window_tokens=4096), default)
    assert re.match(r"chunk \d+ \(not 5000\), memory \d+ \(not 1024\), question \d+ \(not 1024\), read reply \d+", line)


def test_a_section_first_prompt_shares_its_beginning_between_questions() -> None:
    profile = load_profile("section-first")
    prompts = [
        profile.render("read", section="The same.", problem=problem, memory=memory)[-1].text()
        for problem, memory in (("Who?", "Nobody."), ("When?", "In May."))
    ]
    shared = prompts[0].index("Who?")
    assert prompts[0][:shared] == prompts[1][:shared]
    assert "The same." in prompts[0][:shared]
    assert profile.prompts["answer"] == load_profile("default").prompts["answer"]
