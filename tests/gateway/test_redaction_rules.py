"""Secrets and personal data in prose: how many the rules find, and how much else they take for one."""

import re
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.redaction.contexts import Rule
from gateway.policy.redaction.finding import Redaction, find_by_rules
from gateway.policy.redaction.rules import RULES
from memloop.wire.policy import ALL_KINDS, SECRETS, Kind
from tests.gateway.redaction_corpus import Sentence, harmless, sensitive

HELD_BACK = 20270101
"""A seed on which the rules were not developed."""


def found_in(sentence: Sentence) -> list[str]:
    return [sentence.text[each.start : each.end] for each in find_by_rules(sentence.text, ALL_KINDS)]


def redact(text: str, kinds: frozenset[Kind] = ALL_KINDS) -> str:
    return Redaction(kinds, find_by_rules, Counter())(text)


def measured(seed: int) -> tuple[float, float, list[Sentence], list[Sentence]]:
    """Recall, precision, the sentences whose value stays, and those in which something else is taken out."""
    bearing, plain = sensitive(seed), harmless(seed)
    missed = [each for each in bearing if each.value in redact(each.text)]
    false = [each for each in plain if found_in(each)]
    false += [each for each in bearing if any(not _same(found, each.value) for found in found_in(each))]
    taken = len(bearing) - len(missed)
    return taken / len(bearing), taken / (taken + len(false)), missed, false


def _same(found: str, value: str) -> bool:
    return found in value or value in found


@pytest.mark.parametrize("seed", [20261123, HELD_BACK])
def test_recall_and_precision_on_made_up_prose(seed: int) -> None:
    assert len(sensitive(seed)) >= 500
    assert len(harmless(seed)) >= 400
    recall, precision, missed, false = measured(seed)
    print(f"recall {recall:.3f}, precision {precision:.3f}; missed: {Counter(each.kind for each in missed)}")
    assert recall >= 0.95, [each.text for each in missed]
    assert precision >= 0.98, [(each.text, found_in(each)) for each in false]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("My password is Hunter2024.", "My password is [password redacted].", id="spoken"),
        pytest.param('{"password": "two words"}', '{"password": "[password redacted]"}', id="quoted"),
        pytest.param("at postgres://app:p4ss@db/x", "at postgres://[password redacted]@db/x", id="in-a-url"),
        pytest.param("mail jörg@köln.example now", "mail [email redacted] now", id="letters-of-other-languages"),
        pytest.param("a@b.org, +49 30 1234 5678", "[email redacted], [phone redacted]", id="two-kinds"),
        pytest.param("from 2001:db8::8a2e:370:7334", "from [ip redacted]", id="ipv6"),
        pytest.param("std::dec and a::b at 10:11:12", "std::dec and a::b at 10:11:12", id="colons"),
    ],
)
def test_a_value_is_replaced_by_its_kind_alone(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_redacting_twice_does_no_more_than_once() -> None:
    once = [redact(each.text) for each in sensitive()]
    assert [redact(text) for text in once] == once


def test_only_the_kinds_asked_for_are_taken_out() -> None:
    assert redact("a@b.org has AKIAIOSFODNN7EXAMPLE", SECRETS) == "a@b.org has [key redacted]"


REPEATED = (
    "eyJ", "eyJ-", "eyJaaaaaaaa.", "://a:", "://", "a@", "a.", "@a.", "password is ", "password: ", 'password: "',
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA", "sk-", "sk_a", "token=",
    "1.", "1-", "1 ", "ab:", "+1", "(1", "0", "0-", "a", " ", "\n", "-", "DE89 ", "DE12AAAA", "AKIA", "12345678:AA",
    "[", "SG.aaaaaaaaaaaaaaaaaaaaaaaa.", "bearer ", "call me on 1 ", "hooks.slack.com/services/T", "密码",
    "Maaaaaaaaaaaaaaaaaaaaaaaaaa.",
)  # fmt: skip
"""Beginnings of values, again and again: what would make a pattern read the same characters many times."""


def cpu_seconds(text: str) -> float:
    """The least of some measurements of the process's own time, so that another program's work does not count."""

    def once() -> float:
        start = time.process_time()
        find_by_rules(text, ALL_KINDS)
        return time.process_time() - start

    return min(once() for _ in range(3))


@pytest.mark.parametrize("part", REPEATED)
def test_eight_times_the_text_takes_about_eight_times_the_time(part: str) -> None:
    short, long = part * (2_000 // len(part)), part * (16_000 // len(part))
    most = 32 * max(cpu_seconds(short), 0.0005)
    assert any(cpu_seconds(long) < most for _ in range(4))


def by_patterns() -> list[Rule]:
    """The rules that are tried only on a text in which a pattern finds something."""
    return [rule for rule in RULES if rule.signs and all(isinstance(sign, re.Pattern) for sign in rule.signs)]


@given(st.sampled_from(by_patterns()).flatmap(lambda rule: st.tuples(st.just(rule), st.from_regex(rule.pattern))))
def test_no_value_of_a_rule_lacks_the_sign_on_which_the_rule_is_tried(case: tuple[Rule, str]) -> None:
    rule, text = case
    assert any(re.search(sign, text.lower()) for sign in rule.signs)
