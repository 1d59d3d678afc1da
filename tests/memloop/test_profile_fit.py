"""A profile and a served model that do not fit are told so, with the numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from memloop.chunking import TokenizerSplitter
from memloop.profiles import Profile, ProfileError, check_fit, load_profile
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


def test_a_prompt_over_the_window_reports_its_token_sum() -> None:
    words = "{problem} {memory}"
    template = tokenizer().count_own(words) + 16
    needed = 64 + 96 + template + 32
    check_fit(only_answers(words), tokenizer(), window_tokens=needed)
    with pytest.raises(ProfileError) as refusal:
        check_fit(only_answers(words), tokenizer(), window_tokens=needed - 1)
    told = f"problem 64 + memory 96 + template {template} + reply 32 = {needed} tokens, and the window has {needed - 1}"
    assert f"the prompt answer needs {told}" in str(refusal.value)


def only_answers(template: str) -> Profile:
    """A profile whose other prompts are short."""
    specs = {
        name: replace(spec, template="", system=None, tools=(), slots=(), sampling=replace(spec.sampling, max_tokens=1))
        for name, spec in TINY.prompts.items()
    }
    return replace(TINY, prompts={**specs, "answer": replace(TINY.prompts["answer"], template=template)})


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
