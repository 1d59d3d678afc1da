"""Sentences with made-up secrets and personal data, and sentences that only look as if they had some; a fixed seed."""

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.policy.redaction.checks import is_iban, passes_luhn
from memloop.wire.policy import Kind

ROUNDS: Final = 14
_LETTERS: Final = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Sentence:
    """A text, and the sensitive value in it with its kind; ``value`` is empty where there is none."""

    text: str
    value: str = ""
    kind: Kind = "key"


class Made:
    """Values made by one random generator."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, characters: str, count: int) -> str:
        return "".join(self.random.choices(characters, k=count))

    def word(self, count: int) -> str:
        """Letters and digits, at least one digit among them."""
        return self.of(_LETTERS, count - 1) + self.of(string.digits, 1)

    def hexadecimal(self, count: int) -> str:
        return self.of("0123456789abcdef", count)

    def digits(self, count: int) -> str:
        return self.random.choice("123456789") + self.of(string.digits, count - 1)

    def one(self, *options: str) -> str:
        return self.random.choice(options)

    def card(self) -> str:
        body = self.one("4", "51", "55", "37", "6011")
        length = 15 if body == "37" else 16
        body += self.of(string.digits, length - 1 - len(body))
        number = next(body + digit for digit in string.digits if passes_luhn(body + digit))
        grouped = " ".join(number[start : start + 4] for start in range(0, len(number), 4))
        return self.one(number, grouped, grouped.replace(" ", "-"))

    def iban(self) -> str:
        country, length = self.random.choice((("DE", 22), ("FR", 27), ("GB", 22), ("NL", 18), ("ES", 24)))
        bank = {"GB": "NWBK", "NL": "ABNA"}.get(country, "")
        body = bank + self.of(string.digits, length - 4 - len(bank))
        whole = next(f"{country}{check:02d}{body}" for check in range(2, 99) if is_iban(f"{country}{check:02d}{body}"))
        return self.one(whole, " ".join(whole[start : start + 4] for start in range(0, length, 4)))

    def phone(self) -> str:
        group = self.digits
        return self.one(
            f"+49 30 {group(4)} {group(4)}",
            f"+1 ({self.of('23456789', 1)}{self.of(string.digits, 2)}) 555-{self.of(string.digits, 4)}",
            f"+44 20 {group(4)} {group(4)}",
            f"+33{group(9)}",
            f"0171 {group(7)[:3]} {group(4)}",
            f"({self.of('23456789', 1)}{self.of(string.digits, 2)}) 555-{self.of(string.digits, 4)}",
            f"212-555-{self.of(string.digits, 4)}",
        )

    def email(self) -> str:
        name = self.one("ann.lee", "b_smith", "jörg", "k.o", "support+billing", "maria-luisa", "x") + self.of("123", 2)
        name = name.replace("ö", "oe")
        return f"{name}@{self.one('example.com', 'mail.example.co.uk', 'corp.example', 'uni-bonn.example.de')}"

    def ip(self) -> str:
        four = ".".join(str(self.random.randint(1, 254)) for _ in range(4))
        six = "2001:db8:" + ":".join(self.hexadecimal(4) for _ in range(6))
        return self.one(four, four, six)

    def jwt(self) -> str:
        parts = ('{"alg":"HS256"}', f'{{"sub":"{self.word(12)}"}}')
        encoded = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
        return ".".join((*encoded, self.word(43)))

    def private_key(self) -> str:
        kind = self.one("RSA ", "EC ", "OPENSSH ", "")
        lines = "\n".join(self.of(_LETTERS + "+/", 64) for _ in range(self.random.randint(2, 6)))
        return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"

    def key(self) -> str:
        return self.one(
            f"sk-proj-{self.word(48)}",
            f"sk-ant-api03-{self.word(60)}",
            f"sk_live_{self.word(24)}",
            f"rk_test_{self.word(24)}",
            f"AKIA{self.of(string.ascii_uppercase + '234567', 16)}",
            f"AIza{self.word(35)}",
            f"ghp_{self.word(36)}",
            f"github_pat_{self.word(22)}_{self.word(59)}",
            f"glpat-{self.word(20)}",
            f"xoxb-{self.digits(12)}-{self.digits(12)}-{self.word(24)}",
            f"SG.{self.word(22)}.{self.word(43)}",
            f"npm_{self.word(36)}",
            f"pypi-AgEIcHlwaS5vcmc{self.word(70)}",
            f"hf_{self.word(34)}",
            f"{self.digits(9)}:AA{self.word(33)}",
            f"dop_v1_{self.hexadecimal(64)}",
            f"SK{self.hexadecimal(32)}",
            f"whsec_{self.word(32)}",
            f"shpat_{self.hexadecimal(32)}",
        )

    def password(self) -> str:
        return self.one(
            f"{self.one('Summer', 'winter', 'Hunter', 'dragon')}{self.digits(4)}",
            f"{self.word(6)}!{self.word(5)}",
            f"{self.word(12)}",
            f"Tr0ub4dor&{self.digits(1)}",
            f"{self.word(5)}#{self.one('Kafka', 'berlin', 'Tea')}",
        )

    def american_id(self) -> str:
        return f"{self.random.randint(1, 665):03d}-{self.random.randint(1, 99):02d}-{self.random.randint(1, 9999):04d}"

    def spanish_id(self) -> str:
        number = self.random.randint(10_000_000, 99_999_999)
        return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"

    def french_id(self) -> str:
        body = f"{self.one('1', '2')}{self.random.randint(40, 99)}{self.random.randint(1, 12):02d}75{self.digits(6)}"
        return f"{body}{97 - int(body) % 97:02d}"


def sensitive(seed: int = 20261123) -> list[Sentence]:
    """At least 500 sentences with one value each."""
    made = Made(seed)
    return [sentence for _ in range(ROUNDS) for sentence in _round(made)]


def _round(made: Made) -> Iterator[Sentence]:
    for kind, make, frames in _FRAMES:
        for frame in frames:
            value = make(made)
            yield Sentence(frame.format(value), value, kind)


_FRAMES: Final[tuple[tuple[Kind, Callable[[Made], str], tuple[str, ...]], ...]] = (
    ("email", Made.email, ("Write to me at {}, please.", "My mail is {}", "({}) is Ann's address; she reads it.")),
    ("phone", Made.phone, ("Call me on {} after six.", "Our clinic's number changed to {}.", "Tel. {}, ask for Bo.")),
    ("card", Made.card, ("Charge {}, it expires in May.", "The card is {}.", "I used {} for the hotel")),
    ("iban", Made.iban, ("Send the rent to {} by Friday.", "IBAN: {}", "The account {} is Ann's.")),
    ("ip", Made.ip, ("I log in from {} at home.", "The printer has the address {}", "Blocked {} after three tries.")),
    ("national_id", Made.american_id, ("My social security number is {}.", "SSN {} on file")),
    ("national_id", Made.spanish_id, ("El DNI de Marta es {}.",)),
    ("national_id", Made.french_id, ("Mon numéro de sécu : {}.",)),
    ("key", Made.key, (
        "Use {} for the staging bot.", "I pasted {} into the wrong chat!", "export KEY_FOR_CI={}", "the key ({}) works",
        "```\ncurl -H 'X-Api-Key: {}' https://api.example.com\n```",
    )),
    ("token", Made.jwt, ("The session is {} until noon.", "Authorization: Bearer {}")),
    ("private_key", Made.private_key, ("Here is the server's key:\n{}\nKeep it safe.", "{}")),
    ("password", Made.password, (
        "My password is {}.", "The wifi password: {}", "password={} user=ann", '"db_password": "{}",', "PASSWORD='{}'",
        "log in as root, passwd: {}", "postgres://app:{}@db.example.com:5432/app", "the router's pwd is {} now",
        "Mein Passwort ist {}, sag es keinem.", "My bank password is still {}!",
    )),
    ("password", lambda made: made.word(40), ("aws_secret_access_key = {}", "client secret: {}", "API_TOKEN={}")),
    ("password", lambda made: made.digits(4), ("My PIN is {}.", "door code: {}")),
    ("password", lambda made: made.one("swordfish", "correcthorse", "letmein", "opensesame", "blauerelefant"), (
        'My password is "{}".', "password: {}", "The password is {}.",
    )),
)  # fmt: skip


def harmless(seed: int = 20261123) -> list[Sentence]:
    """Sentences without any sensitive value, most with something that looks like one."""
    made = Made(seed + 1)
    return [Sentence(text) for _ in range(ROUNDS) for text in _look_alikes(made)]


def _look_alikes(made: Made) -> Iterator[str]:
    number, digest = made.random.randint, made.hexadecimal
    yield f"I reverted {digest(40)} because the tests failed."
    yield f"Cherry-pick {digest(7)} and {digest(12)} onto main, please."
    yield f"The image is python@sha256:{digest(64)}."
    yield f"md5 of the file: {digest(32)}"
    yield f"My order {made.digits(3)}-{made.digits(7)}-{made.digits(7)} has not arrived."
    yield f"Order number {made.digits(10)} ships on Monday."
    yield f"Ticket #{made.digits(6)} is a duplicate of #{made.digits(6)}."
    yield f"Upgrade to {number(1, 9)}.{number(0, 40)}.{number(0, 9)} first, then to v{number(2, 9)}.{number(0, 9)}."
    yield f"Windows version 10.0.{number(10000, 30000)}.{number(1, 900)} has the bug."
    yield f"Chrome {number(90, 140)}.0.{number(1000, 9000)}.{number(10, 200)} crashes here."
    yield f"The job {uuid.UUID(int=made.random.getrandbits(128), version=4)} is stuck."
    yield f"request id req_{made.word(10)} in region eu-central-{number(1, 3)}"
    yield f"ISBN 978-{number(0, 9)}-{number(100, 999)}-{number(10000, 99999)}-{number(0, 9)} is on my list."
    yield f"We met on 2026-{number(1, 12):02d}-{number(1, 28):02d} at {number(0, 23):02d}:{number(0, 59):02d}:07."
    yield f"Her birthday is {number(1, 28):02d}/{number(1, 12):02d}/{number(1950, 2010)}, he was born in 1984."
    yield f"The log's first stamp is {number(1_600_000_000, 1_799_999_999)}, so it is old."
    yield f"It cost {number(1, 9)},{number(100, 999)}.{number(10, 99)} euros for {number(2, 30)} people."
    yield f"Our house stands at 52.{number(100000, 999999)}, 13.{number(100000, 999999)} on the map."
    yield f"Parcel {made.digits(12)} left the depot; tracking code RR{made.digits(9)}DE."
    yield f"The flight LH{number(100, 999)} leaves from gate B{number(1, 60)} at {number(1, 12)} pm."
    yield "The password is required and must be changed every month."
    yield "I forgot my password again, the reset link is expired."
    yield "The token is invalid, so the server returns 401 and the secret is safe."
    yield "password: required, token: string, secret: none"
    yield f"The context window has {number(1000, 9000)} tokens; max_tokens: {number(100, 900)}."
    yield "The key to a good risotto is patience, and the secret is warm stock."
    yield "Set api_key=os.environ['OPENAI_API_KEY'] and password=${DB_PASSWORD} in the file."
    yield "Use sk-learn-style-pipelines-with-named-steps and pk-something-quite-long-and-hyphenated."
    yield "She plays keys-and-strings-together-forever on key-2024-01-15-final-version."
    yield f"pip install pypi-attestations=={number(0, 3)}.{number(0, 9)}.{number(0, 99)} hf_transfer npm_config"
    yield f"The tag @ann-{number(1, 99)} and the handle @bo are on the same team."
    yield f"CVE-2026-{number(1000, 99999)} is fixed in kernel 6.{number(1, 20)}.{number(1, 90)}."
    yield f"At 10:{number(10, 59)}:{number(10, 59)} the ratio was 3:2:1."
    yield f"My score was {number(100, 999)} of 1000, rank {number(1, 999)} of {number(1000, 99999)}."
