"""Secrets by the name of the setting that holds them: ``PGPASSWORD=…``, ``"apiKey": "…"``, ``("AUTH_KEY", "…")``."""

import re
from typing import Final

from gateway.policy.redaction import checks
from gateway.policy.redaction.formats import is_generated

_SEGMENTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MORE_WORDS: Final = frozenset((
    "base", "base64", "b64", "value", "string", "plain", "text", "prod", "dev", "test", "live", "staging", "new",
    "old", "current", "default",
))  # fmt: skip
"""What may stand behind the word that says what a setting holds."""
_PASSWORDS: Final = ("password", "passwd", "passphrase", "passcode", "passwort", "pwd", "psswd", "passwords")
_SHORT_PASSWORDS: Final = frozenset(("pass", "pw", "psw", "pswd", "pswrd", "userpass", "dbpass", "authpass"))
_SECRETS: Final = (
    "secret", "token", "credential", "credentials", "creds", "apikey", "accesskey", "secretkey", "privatekey",
    "authkey", "signature", "secrets", "authtoken", "sessionid", "sessid", "sid", "auth", "sig", "jwt", "psk",
    "mnemonic", "cred", "hmac", "webhook", "dsn", "otp", "totp", "seed", "salt", "pat", "ticket", "assertion",
    "xsrf", "csrf", "sas",
)  # fmt: skip
_KEY_WORDS: Final = frozenset((
    "api", "access", "account", "auth", "encryption", "private", "shared", "license", "secret", "master", "signing",
    "client", "server", "service", "app", "application", "webhook", "user", "admin", "session", "deploy", "root",
    "storage", "subscription", "security", "consumer", "integration", "write", "read", "rest", "ingest",
    "functions", "function", "host", "authentication", "jwt", "hmac", "aes", "crypto", "cipher", "decryption",
    "registry",
))  # fmt: skip
"""The key of such a thing is a secret."""
_PUBLIC: Final = frozenset((
    "public", "pub", "primary", "foreign", "sort", "partition", "cache", "row", "group", "index", "idempotency",
    "object", "lookup", "composite", "natural", "unique", "join", "bucket", "ssh", "file", "path", "name", "id",
    "message", "translation", "i18n", "host", "hot", "short", "shortcut", "max", "min", "total", "num", "count",
    "next", "page", "continuation", "cursor", "completion", "prompt", "eos", "bos", "pad", "unk", "stop", "special",
    "input", "output", "csrf",
))  # fmt: skip
"""The key or the token of such a thing is none."""
_NO_VALUE: Final = re.compile(
    r"https?://|file:|\./|\.\./|/(?:[a-z]+/)+[\w.-]*$|~/|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|v?\d+(?:\.\d+)+$"
    r"|process\.env|os\.environ|[%@#]?\{|\$"
)
"""Addresses, paths, attributes of objects, versions, and names of variables."""
_UUID_OR_HASH: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?:sha\d+[:-])?[0-9a-fA-F]+")
_NOT_MARK: Final = r"(?!\[[a-z ]{2,20} redacted\])"
_QUOTE: Final = r"(?:\\{0,2}[\"'`])"
SETTING: Final = (
    rf"(?<![\w.-])(?P<name>[^\W\d][\w.-]{{1,79}}+)(?:(?P<pair>[\"'],\s{{0,3}}(?=[\"']))|{_QUOTE}?\]?\s{{0,3}}"
    rf"(?::=|=>|\?=|\|\|=|={{1,2}}|:{{1,2}})\s{{0,3}})"
    rf"(?:{_QUOTE}{_NOT_MARK}(?P<value>[^\"'`\n]{{3,512}}+)(?=[\"'`])|(?:[a-zA-Z]?[\"'`])?{_NOT_MARK}"
    r"(?P<bare>[^\s\"'`,;<>&|(){}]{3,512}+))"
)
"""A setting with its value: ``PGPASSWORD=…``, ``"apiKey": "…"``, ``("AUTH_KEY", "…")``."""


def is_secret_setting(setting: re.Match[str]) -> bool:
    """Return whether a match of ``SETTING`` is the value of a setting that is secret by its name."""
    value = (setting["value"] or setting["bare"]).rstrip("\\.:!?)]…")
    if len(value) < 3 or _NO_VALUE.match(value) or (setting["pair"] and not checks.is_spoken_password(value)):
        return False
    return holds_secret(setting["name"], value)


def holds_secret(name: str, value: str) -> bool:
    """Return whether a setting of this name holds a secret, and the value looks like one and not like a word."""
    words = [word.lower() for word in _SEGMENTS.findall(name)]
    while len(words) > 1 and (words[-1] in _MORE_WORDS or words[-1].isdigit()):
        words.pop()
    last, others = (words[-1] if words else ""), frozenset(words[:-1])
    if last in _SHORT_PASSWORDS or last.endswith(_PASSWORDS):
        return checks.is_given_password(value) and " " not in value
    if others & _PUBLIC:
        return False
    if last in ("key", "keys"):
        if others & _KEY_WORDS:
            return checks.is_given_secret(value) and len(value) >= 8 and " " not in value
        is_environment = "_" in name and name.upper() == name
        return is_generated(value) and (is_environment or not _UUID_OR_HASH.fullmatch(value))
    if last in _SECRETS or last.endswith(("apikey", "secret", "token", "secretkey", "accesskey")):
        return checks.is_given_secret(value) and len(value) >= 8 and " " not in value
    return False
