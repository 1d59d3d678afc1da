"""Rules that find secrets and personal data in prose: a pattern each, and for most a check of the value.

Every pattern takes time in proportion to the text. A pattern that begins with a run of characters cannot begin inside
such a run (the lookbehind), and its runs are bounded or possessive, so that no character is read more than a constant
number of times.
"""

import re
from collections.abc import Sequence
from typing import Final

from gateway.policy.redaction import checks
from gateway.policy.redaction.contexts import CONTEXTS, Rule, rule
from gateway.policy.redaction.formats import CANDIDATE, FORMATS, SETTING, is_key, is_secret_setting

_BEFORE_CHARS: Final = 16
_GAP: Final = "[ \u00a0\u2009\u202f.\\-\u2010\u2011\u2013/]"


def _is_address(match: re.Match[str]) -> bool:
    start = match.start()
    return checks.is_address(match[0], match.string[max(0, start - _BEFORE_CHARS) : start])


_PEM = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{1,60}-----"
_PEM_LINES = r"(?:(?:\s|\\[nr]){0,4}[A-Za-z0-9+/=]{20,80}+(?![A-Za-z0-9+/=]))*+"

_WEBHOOK = (
    r"(?<=hooks\.slack\.com/services/)T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{16,}+"
    r"|(?<=/api/webhooks/)\d{16,20}/[A-Za-z0-9_-]{40,}+"
)

_BY_WORD = (
    r"pass(?:word|wd|phrase|code)|pwd|passwort|kennwort|contraseña|mot de passe|senha|wachtwoord|пароль|密码|パスワード"
)
_BY_NAME = (
    r"(?:client|api|app|shared|consumer|signing)[ _-]?secret(?:[ _-]?key)?|secret(?:[ _-]?access)?[ _-]?key|secret"
    r"|(?:api|access|account|auth|encryption|private|shared[ _-]?access|license)[ _-]?key"
    r"|(?:auth|access|refresh|bearer|api|id|session|bot|security)[ _-]?token|(?<!page[ _-])token|credentials?"
)
_UNQUOTED = r"(?P<bare>[^\s\"'`,;<>&|]{4,256}+)"
_QUOTED = r"(?P<quote>[\"'`])(?P<value>[^\s\"'`][^\"'`\n]{2,127}+)(?=[\"'`])"
_IS = r"(?:\s{1,3}(?:is|was|to|ist|lautet|es|est|é|are)\s{1,3}(?:now\s{1,3}|still\s{1,3})?|\s{0,3}(?:是|は|为)\s{0,3})"
_SET = r"[\"'`]?\s{0,3}(?::=|=>|[:=：])\s{0,3}"
_NOT_MARK = r"(?!\[[a-z ]{2,20} redacted\])"


_SAID = (
    rf"(?i)(?<![A-Za-z0-9])(?:(?P<word>{_BY_WORD})|(?:{_BY_NAME}))(?:(?P<is>{_IS})|{_SET}){_NOT_MARK}"
    rf"(?:{_QUOTED}|{_UNQUOTED})"
)
"""What somebody says a password or a key is."""


def _is_said(match: re.Match[str]) -> bool:
    """Return whether the value looks like one: the less its place says so, the more its characters must."""
    if match["value"] is not None or (match["word"] is not None and match["is"] is None):
        return checks.is_given_password(match["value"] or match["bare"])
    if match["is"] is not None:
        return checks.is_spoken_password(match["bare"])
    return len(match["bare"]) >= 6 and checks.is_given_secret(match["bare"])


_OF_KEYS = "|".join(
    rf"(?<={name}key)|(?<={name}[ _-]key)"
    for name in ("api", "access", "account", "auth", "encryption", "private", "license")
)
_WORD_SIGNS = (
    "pass", "pwd", "secret", "token", "credential", "kennwort", "contraseña", "senha", "wachtwoord", "пароль",
    "密码", "パスワード", re.compile(f"key(?:{_OF_KEYS})"),
)  # fmt: skip
"""A word or a name of ``_BY_WORD`` and ``_BY_NAME`` has one of these; a mere "key" is in many texts."""
RULES: Final[Sequence[Rule]] = (
    rule("private_key", ("private key",), rf"{_PEM}(?:{_PEM_BODY}|{_PEM_LINES})"),
    rule("token", ("eyj",), r"(?a)(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+"),
    *(rule("key", tuple(signs.split()), rf"(?<![A-Za-z0-9_-])(?:{pattern})") for signs, pattern in FORMATS),
    rule("key", (re.compile("[a-z0-9_./~$-]{16}"),), CANDIDATE, is_key),
    rule("key", ("hooks.slack.com/services/", "/api/webhooks/"), _WEBHOOK),
    *CONTEXTS,
    rule("password", ("=", ":", "',", '",'), SETTING, accepts=is_secret_setting),
    rule("token", ("bearer", "basic"), r"(?i)(?<![\w-])(?:bearer|basic)\s{1,3}(?P<value>[\w.~+/-]{16,}+=*+)",
         checks.is_given_secret),
    rule("password", _WORD_SIGNS, _SAID, accepts=_is_said),
    rule("password", ("pin", "cv", "otp", "code"),
         r"(?i)(?<![A-Za-z0-9])(?:pin|cvv2?|cvc|otp|passcode|pin[ -]code|door code)(?:\s{1,3}is\s{1,3}|"
         r"\s{0,3}[:=]\s{0,3}|\s)(?P<value>\d{3,8})(?![\w-])"),
    rule("email", ("@",), r"(?<![\w.%+-])[\w.%+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,6}+"),
    rule("iban", (), r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \u00a0]?[A-Z0-9]{4}){2,7}(?:[ \u00a0]?[A-Z0-9]{1,3})?"
         r"(?![A-Za-z0-9])", checks.is_iban),
    rule("national_id", (), r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", checks.is_social_security),
    rule("national_id", (),
         r"(?<!\w)(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]"
         r"(?!\w)"),
    rule("national_id", (), r"(?<![\w-])[XYZ\d]\d{7}-?[A-Z](?!\w)",
         lambda text: checks.is_spanish_id(text.replace("-", ""))),
    rule("national_id", (), r"(?<!\w)[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z](?!\w)", checks.is_italian_id),
    rule("national_id", (), r"(?<![\w.])[12] ?\d\d ?[01]\d ?\d\d ?\d{3} ?\d{3} ?\d\d(?!\w)", checks.is_french_id),
    rule("national_id", (), r"(?<![\w.])\d{3}\.\d{3}\.\d{3}-\d\d(?!\w)", checks.is_brazilian_id),
    rule("card", (), r"(?<![\w.-])\d(?:[\s._/-]{0,2}\d){12,18}(?![\w-])", checks.is_card),
    rule("ip", (), r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)", accepts=_is_address),
    rule("ip", (), r"(?<![\w:.])[0-9A-Fa-f:]{4,39}+(?![\w:])", accepts=_is_address),
    rule("phone", (), rf"(?<![\w.])(?:\+|00)\d(?:(?:{_GAP}|[()]){{0,3}}\d){{6,14}}(?!\w)", checks.is_phone),
    rule("phone", (), rf"(?<![\w.-])\(?0\d{{1,4}}\)?(?:{_GAP}\d{{2,5}}){{2,4}}(?!\w)", checks.is_phone),
    rule("phone", (), rf"(?<![\w.-])(?:1{_GAP})?(?:\(\d{{3}}\) ?|\d{{3}}{_GAP})\d{{3}}{_GAP}\d{{4}}(?![\w-])"),
    rule("phone", (),
         r"(?i)(?:phone|mobile|cell|tel|whatsapp|call me (?:at|on)|text me (?:at|on)|number is)\.?:?\s{1,2}"
         r"(?P<value>\(?\d(?:[ .-]?\d){8,11})(?!\w)", checks.is_phone),
)  # fmt: skip
"""In order: where two find overlapping values, the first one's is redacted."""
