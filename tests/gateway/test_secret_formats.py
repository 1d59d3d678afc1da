"""Redaction by the forms of 200 services and by context: how many secrets it finds, and what else it takes for one."""

import random
from collections.abc import Set
from typing import Final

import pytest

from gateway.policy.redaction.finding import bits_for_each, find_by_rules, kept_rules, mark_of, replaced
from memloop.wire.policy import SECRETS, Kind
from tests.gateway.plain_sentences import plain_sentences
from tests.gateway.secret_formats import FORMS, Format, formats, made

STORED_BY_DEFAULT: Final[Set[Kind]] = frozenset[Kind](("card", *SECRETS))
"""The kinds that are redacted unless somebody says otherwise."""


def redacted(text: str) -> str:
    return replaced(text, find_by_rules(text, STORED_BY_DEFAULT), lambda found: mark_of(found.kind))


def is_left(case: Format) -> bool:
    """Whether more than two characters of the secret stay."""
    start = case.text.index(case.value)
    end = start + len(case.value)
    hidden = sum(max(0, min(each.end, end) - max(each.start, start)) for each in find_by_rules(case.text, SECRETS))
    return end - start - hidden > 2


def test_the_secrets_of_published_forms_are_found() -> None:
    cases = [case for seed in range(3) for case in formats(seed)]
    left = [case.name for case in cases if is_left(case)]
    assert len(FORMS) >= 300
    assert len(left) <= 0.01 * len(cases), left


def test_sentences_without_secrets_stay_as_they_are() -> None:
    sentences = plain_sentences()
    changed = [text for text in sentences if find_by_rules(text, STORED_BY_DEFAULT)]
    assert len(sentences) == 5_000
    assert len(set(sentences)) > 4_500
    assert len(changed) <= 5, changed


def test_redacting_a_form_twice_does_no_more_than_once() -> None:
    once = [redacted(case.text) for case in formats()]
    assert [redacted(text) for text in once] == once


FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
CARD = "4111 1111 1111 1111"
VARIABLES = 'curl -H "Authorization: Bearer $TOKEN" -u "$USER:$PASS" https://x.example'
KEY = "sk_live_" + "Ab3dEf6hIj9kLm2nOp5q"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param(f"Karte {CARD.translate(FULL_WIDTH)}。", "Karte [card redacted]。", id="full-width-digits"),
        pytest.param(f"بطاقة {CARD.translate(ARABIC)}.", "بطاقة [card redacted].", id="arabic-digits"),
        pytest.param("card 4111\u20111111\u20111111\u20111111!", "card [card redacted]!", id="unbreakable-hyphens"),
        pytest.param(f"card {CARD.replace(' ', '.')}", "card [card redacted]", id="dots"),
        pytest.param(f"card {CARD[:3]}\u200b{CARD[3:]}", "card [card redacted]", id="invisible-in-a-card"),
        pytest.param(f"é {KEY[:12]}\u200b{KEY[12:]} é", "é [key redacted] é", id="zero-width-space"),
        pytest.param("é " + "\u2060".join(KEY) + " é", "é [key redacted] é", id="word-joiners"),
        pytest.param(f"my {KEY[:3]}\u00ad{KEY[3:]}, ok", "my [key redacted], ok", id="soft-hyphen"),
        pytest.param("ｐｗｄ：Ｈｕｎｔｅｒ２０２４", "ｐｗｄ：[password redacted]", id="full-width-letters"),
        pytest.param("Wait… ½ of ﬁve, naïve — ok", "Wait… ½ of ﬁve, naïve — ok", id="other-characters-stay"),
        pytest.param("PGPASSWORD=hunter22 psql", "PGPASSWORD=[password redacted] psql", id="environment"),
        pytest.param("curl -u ann:hunter22 https://x", "curl -u [password redacted] https://x", id="curl"),
        pytest.param(VARIABLES, VARIABLES, id="variables-stay"),
        pytest.param("mysql -u root -p shop", "mysql -u root -p shop", id="a-database-after-p"),
        pytest.param("ssh -p 2222 ann@x.example", "ssh -p 2222 ann@x.example", id="a-port-after-p"),
        pytest.param("the default password for new users", "the default password for new users", id="prose"),
    ],
)  # fmt: skip
def test_a_secret_is_found_however_it_is_spelt_and_only_it_goes(text: str, clean: str) -> None:
    assert redacted(text) == clean


def test_two_rules_that_find_parts_of_one_secret_take_all_of_it() -> None:
    secret = made("sk_live_<a24>.<a30>", random.Random(1))
    assert redacted(f"my api key is {secret} now") == "my api key is [key redacted] now"


def test_every_kept_rule_has_a_keyword_that_its_pattern_needs_a_text_to_hold() -> None:
    rules = kept_rules()
    assert len(rules) > 200
    assert all(keyword == keyword.lower() for rule in rules for keyword in rule.keywords)
    assert all(rule.keywords and rule.pattern.groups >= rule.group for rule in rules)


def test_a_placeholder_is_no_key() -> None:
    assert bits_for_each("x" * 36) == 0
    assert redacted("SETTINGS_KEY=xxxxxxxxxxxxxxxxxxxxxxxx") == "SETTINGS_KEY=xxxxxxxxxxxxxxxxxxxxxxxx"
