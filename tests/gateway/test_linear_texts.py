"""What the gateway does with a client's text takes linear time: redaction, refusals, chunks, ranking."""

import pytest

from gateway.memory.pending import ranked
from gateway.policy.redaction.finding import find_by_rules
from gateway.policy.redaction.phrases import refusals_of
from gateway.vector_stores.indexing import chunks_of
from gateway.vector_stores.schemas import StaticChunks
from memloop.wire.memory import MAX_TEXT_CHARS, PendingTurn
from memloop.wire.policy import ALL_KINDS
from tests.memloop.growth import is_linear

UNITS = {
    "digits": "1",
    "digit groups": "12 ",
    "dotted digits": "1.",
    "dashes": "1-",
    "parentheses": "(0",
    "pluses": "+1",
    "letters": "a",
    "capitals": "A",
    "hexadecimal": "f:",
    "emails": "a@b.cd ",
    "ats": "a@",
    "open addresses": "a@b.",
    "schemes": "a://b:",
    "passwords": "password: ",
    "quoted passwords": 'password: "',
    "password is": "password is ",
    "secret": "secret",
    "api keys": "api key ",
    "bearer": "bearer ",
    "prefixes": "sk-",
    "random keys": "sk-Ab3dEf6hIj9kLm2n ",
    "AKIA": "AKIA",
    "web tokens": "eyJ",
    "points of web tokens": "eyJabcdefgh.",
    "PEM": "-----BEGIN PRIVATE KEY-----",
    "PEM that ends": "-----END PRIVATE KEY-----",
    "dashes of PEM": "-----BEGIN PRIVATE KEY-----" + "-" * 20,
    "hooks": "hooks.slack.com/services/T",
    "IBAN": "DE44 ",
    "addresses": "1.2.3.4 ",
    "phones": "+49 30 1234567 ",
    "number is": "number is 1",
    "blanks": " ",
    "line ends": "\n \t",
    "marks": "!",
    "wide marks": "。",
    "sharp s": "ẞ",
    "dotted I": "İ",
}

SECRET_UNITS = {
    "curl": "curl -u ",
    "http": "http -a ",
    "mysql": "mysql -p",
    "cookies": "cookie: a=",
    "credentials of a header": "authorization: basic ",
    "settings": 'api_key="',
    "options": "--password ",
    "a service's name": "adafruit=",
    "a service's beginning": "fm2_",
    "many services": "datadog asana discord facebook twitter new-relic dropbox fastly = ",
    "base64 of PEM": "LS0tLS1CRUdJTi",
    "hashes of passwords": "$6$abcdefgh$",
    "invisible": "a\u200b",
    "full-width": "４",
}


def text_of(unit: str, size: int) -> str:
    return (unit * (1 + size // len(unit)))[:size]


@pytest.mark.parametrize("unit", (UNITS | SECRET_UNITS).values(), ids=UNITS | SECRET_UNITS)
def test_sensitive_values_are_found_in_linear_time(unit: str) -> None:
    def found(text: str) -> object:
        return find_by_rules(text, ALL_KINDS)

    assert is_linear(lambda size: text_of(unit, size), found, size=2 * MAX_TEXT_CHARS)


PHRASES = ("a", "aa", "aaa b", "never say", "! !", "。", "1 2", "password is now")


@pytest.mark.parametrize("unit", [*UNITS.values(), "never say ", "never  say. ", "a a", "aaa b"], ids=repr)
def test_sentences_that_are_never_kept_are_found_in_linear_time(unit: str) -> None:
    refusals = refusals_of(PHRASES)
    assert refusals is not None
    assert is_linear(lambda size: text_of(unit, size), refusals.without, size=2 * MAX_TEXT_CHARS)


@pytest.mark.parametrize("unit", ["word ", "a", " ", "\f", ".", "\n", "。", "é "], ids=repr)
def test_a_file_is_cut_into_chunks_of_a_vector_store_in_linear_time(unit: str) -> None:
    size = StaticChunks(max_chunk_size_tokens=100, chunk_overlap_tokens=50)

    def cut(text: str) -> object:
        return list(chunks_of([text], size))

    assert is_linear(lambda chars: text_of(unit, chars), cut, size=1 << 19)


@pytest.mark.parametrize("unit", ["word ", "ab ", "é", "1 "], ids=repr)
def test_turns_that_wait_are_ranked_in_linear_time(unit: str) -> None:
    def turns(size: int) -> list[PendingTurn]:
        text = text_of(unit, 32_000)
        return [
            PendingTurn(status="queued", role="user", content=f"{number} {text}", user_id="u")
            for number in range(size // 32_000)
        ]

    assert is_linear(turns, lambda given: ranked(given, text_of(unit, 32_000)), size=640_000)
