"""Secrets by what stands before them: headers, cookies, options of commands, files of passwords, addresses."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.policy.redaction import checks
from gateway.policy.redaction.formats import is_generated
from memloop.wire.policy import Kind


def holds_cookie(text: str) -> bool:
    """Return whether one of the cookies has a value that was generated."""
    return any(checks.is_random(part) or is_generated(part) for part in re.split("[=;%:,&. ]", text))


def is_option(text: str) -> bool:
    """Return whether the word after ``-p`` is a password: no other option, variable, number of a port, or path."""
    return text[0] not in "-$<{(/" and not text.isdecimal() and checks.is_given_password(text)


def is_name_and_password(text: str) -> bool:
    """Return whether it is ``user:password`` for a server: both are there, and no variable is the password."""
    name, colon, password = text.partition(":")
    return bool(colon) and len(password) >= 3 and password[0] not in "$<{/" and not (name + password).isdecimal()


Sign: TypeAlias = str | re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """Finds one kind. The group ``value`` or ``bare``, if there is one, is the part to redact.

    ``signs``: the pattern is tried only on a text that has one of these in lower case, words or what a pattern finds;
    with none, on one with digits.
    """

    kind: Kind
    signs: tuple[Sign, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    accepts: Callable[[re.Match[str]], bool] | None = None


def rule(
    kind: Kind,
    signs: tuple[Sign, ...],
    pattern: str,
    check: Callable[[str], bool] | None = None,
    *,
    accepts: Callable[[re.Match[str]], bool] | None = None,
) -> Rule:
    """Return the rule of a pattern."""
    return Rule(kind, signs, re.compile(pattern), check, accepts)


_QUOTE: Final = r"(?:\\{0,2}[\"'`])"
_SET: Final = rf"{_QUOTE}?\s{{0,3}}[:=]{{1,2}}\s{{0,3}}{_QUOTE}?"
_WORD: Final = r"[^\s\"'`,;<>|]{3,256}+"
_ANY: Final = rf"(?:[\"'](?P<value>[^\"'\n]{{3,256}}+)|(?P<bare>{_WORD}))"
_THERE: Final = r"\b[^\n]{0,300}?\s"
"""From a command to one of its options."""

_SCHEMES: Final = (
    "basic|bearer|digest|token|apikey|api-key|key|negotiate|ntlm|hawk|oauth|signature|aws4-hmac-sha256|aws|sharedkey"
    "|sharedkeylite|sharedaccesssignature|geniekey|splunk|bot|ssws|klaviyo-api-key|snowflake|user|jwt|mac|hmac|dpop"
    "|kakaoak|discogs|deepl-auth-key|zoho-oauthtoken|gosolr|pve-api-token|scram-sha-256|credential|macaroon|elastic"
    "|privatetoken"
)
_VARIABLE: Final = r"\$[A-Z_]+|\$?\{|<"
_HEADERS: Final = (
    rule("token", ("authorization",),
        rf"(?i)(?<!\w)(?:[\w-]{{1,20}}-)?authorization{_SET}(?:{_SCHEMES})\s{{1,3}}(?!{_VARIABLE})"
        rf"(?P<value>[\w-]{{2,30}}={_QUOTE}[^\n]{{4,1000}}+|[^\s\"'`][^\n\"'`]{{5,1000}}+)"),
    rule("token", ("authorization",),
        rf"(?i)(?<!\w)(?:[\w-]{{1,20}}-)?authorization{_SET}(?P<value>[\w.~+/:=-]{{12,1000}}+)",
        checks.is_given_secret),
    rule("token", ("cookie",),
        rf"(?i)(?<![a-z0-9])cookie[12]?{_SET}(?P<value>[\w.-]{{1,64}}+=[^\n\"'`]{{4,4000}}+)", holds_cookie),
    rule("token", ("sessid", "session", "connect.sid", "csrf", "xsrf", ".aspxauth"),
        r"(?i)(?<![A-Za-z0-9])(?:PHPSESSID|JSESSIONID|ASPSESSIONID\w{8}|ASP\.NET_SessionId|connect\.sid|csrftoken"
        r"|_?\w{0,30}session(?:_?id)?|xsrf-token|\.ASPXAUTH)=(?P<value>[\w.%~+/-]{12,}+=*+)", holds_cookie),
)  # fmt: skip

_WITH_P: Final = (
    "sshpass|docker login|podman login|helm registry login|mongo|mongosh|mongodump|mongorestore|sqlcmd|bcp|ldapsearch"
    "|az login|oc login|mosquitto_pub|mosquitto_sub|7z|zip|unzip|plink|pscp|psexec|rabbitmqadmin|cqlsh|influx|lftp"
    "|clickhouse-client|expect|kinit|cf login|nats|vncviewer|xfreerdp"
)
_COMMANDS: Final = (
    rule("token", ("curl",),
        rf"(?i)\bcurl{_THERE}(?:-b|--cookie)[ =]?[\"']?(?P<value>[\w.-]{{1,64}}=[^\n\"'`]{{4,2000}}+)", holds_cookie),
    rule("password", ("curl", "http", "wget"),
        rf"(?i)\b(?:curl|https?|xh|wget){_THERE}(?:-u|--user|-U|--proxy-user|-a|--auth)[ =]{{0,3}}[\"']?"
        r"(?P<value>[^\s\"':/]{0,128}+:[^\s\"']{3,128}+)", is_name_and_password),
    rule("password", (" -p",), rf"(?i)\b(?:{_WITH_P}){_THERE}-p ?{_ANY}", is_option),
    rule("password", ("mysql", "mariadb"),
        rf"(?i)\b(?:mysql\w{{0,10}}|mariadb[\w-]{{0,8}}){_THERE}-p{_ANY}", is_option),
    rule("password", ("redis-cli", "ldap", "mosquitto", "zip", "keytool"),
        rf"(?i)\b(?:redis-cli{_THERE}-a|ldap\w{{3,10}}{_THERE}-w|mosquitto_\w{{3}}{_THERE}-P|(?:un)?zip{_THERE}-P"
        rf"|keytool{_THERE}-(?:store|key)pass) {{1,3}}{_ANY}", is_option),
    rule("password", ("smbclient",), rf"(?i)\bsmbclient{_THERE}-U [\"']?[\w.\\/-]{{1,64}}%(?P<value>{_WORD})"),
    rule("password", ("sqlplus",),
        r"(?i)\bsqlplus\s(?:-\w\s)?[\"']?[\w$-]{1,64}/(?P<value>[^\s@\"']{3,128}+)", is_option),
    rule("password", ("htpasswd",),
        rf"(?i)\bhtpasswd\s[^\n]{{0,100}}?-\w{{0,4}}b\w{{0,4}}\s+\S{{1,200}}\s+\S{{1,100}}\s+{_ANY}", is_option),
    rule("password", ("pass:",), rf"(?i)\s-pass(?:in|out)?[ =]pass:(?P<value>{_WORD})", is_option),
    rule("password", ("net use",), rf"(?i)\bnet use{_THERE}/user:\S{{1,100}}\s{{1,3}}(?P<value>{_WORD})", is_option),
    rule("password", ("--",),
        r"(?i)(?<![\w-])--(?:[a-z]+-){0,4}(?:password|passwd|pass|passphrase|pwd|token|secret|api-?key|secret-?key"
        r"|access-?key|auth-?token|(?:master|encryption|auth|private)-key|key-?secret|credentials?)(?:=|\s{1,3})"
        rf"{_ANY}", is_option),
)  # fmt: skip

_FILES: Final = (
    rule("password", ("password",),
        r"(?i)\b(?:machine\s+\S{1,253}\s+(?:login\s+\S{1,128}\s+)?|default\s+login\s+\S{1,128}\s+)"
        r"(?:account\s+\S{1,128}\s+)?password\s+[\"']?(?P<value>[^\s\"']{3,256}+)"),
    rule("password", (":5432:", ":5433:", ":3306:", ":6432:", ":*:"),
        r"(?<![\w.*-])(?:[A-Za-z*][\w.-]{0,200}+|\d{1,3}(?:\.\d{1,3}){3}):(?:\d{2,5}|\*):[\w*-]{1,64}+:[\w*.-]{1,64}+:"
        r"(?P<value>[^\s:]{4,128}+)", checks.is_given_password),
    rule("password", ("identified",),
        r"(?i)\bidentified\s+(?:with\s+\w{1,40}\s+)?by\s+(?:password\s+)?[\"'](?P<value>[^\"'\n]{3,128}+)",
        checks.is_given_password),
    rule("password", ("password",),
        r"(?i)\b(?:role|user)\s+[\"']?\w{1,64}[\"']?\s[^;\n]{0,60}?password\s+[\"'](?P<value>[^\"'\n]{3,128}+)",
        checks.is_given_password),
    rule("password", ("</",),
        r"(?i)<[\w:.-]{0,40}(?:password|passwd|passphrase|secret|token|api-?_?key|access_?key)\b[^>]{0,80}>"
        r"(?P<value>[^<>\s][^<>\n]{2,255}+)(?=</)", checks.is_given_password),
    rule("password", ("value=",),
        r"(?i)\b(?:key|name)=[\"'][\w:.-]{0,60}?(?:password|passwd|secret|token|api-?_?key|accesskey)[\"']\s{1,3}"
        r"value=[\"'](?P<value>[^\"'\n]{3,256}+)", checks.is_given_password),
    rule("password", ("$",),
        r"(?<![A-Za-z0-9$])\$(?:apr1|1|5|6|7|y|2[abxy]|sha1|argon2(?:id|i|d)|scrypt|pbkdf2[\w-]{0,12})\$"
        r"[A-Za-z0-9./$+=,_-]{20,200}+"),
    rule("password", ("pbkdf2_", "bcrypt", "argon2", "scrypt"),
        r"(?<!\w)(?:pbkdf2_sha\d{1,3}|bcrypt(?:_sha256)?|argon2|scrypt)\$[A-Za-z0-9./$+=,_-]{20,200}+"),
    rule("password", ("sha}", "sha256}", "sha512}"), r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{20,120}+={0,2}"),
)  # fmt: skip

_ADDRESSES: Final = (
    rule("password", ("://",), r"(?<=://)[^\s/:@]{0,128}+:[^\s/]{1,256}(?=@)"),
    rule("password", ("://",), r"(?<=://)(?P<value>[A-Za-z0-9_-]{16,}+)(?=@)", is_generated),
    rule("password", ("sig=", "signature=", "credential=", "code=", "key=", "token=", "auth=", "secret=", "st="),
        r"(?i)[?&](?:sig|signature|x-amz-signature|x-amz-credential|x-goog-signature|x-amz-security-token|code|key|token"
        r"|auth|secret|access_token|api_?key|st|hapikey)=(?P<value>[\w.%~+/-]{16,}+=*+)", is_generated),
)  # fmt: skip

_MORE_LINES: Final = r"(?:(?:\s|\\n){1,4}[A-Za-z0-9+/_-]{20,80}+)*+={0,2}"
_PRIVATE_KEYS: Final = (
    rule("private_key", ("ls0tls1crudjti",),
        rf"LS0tLS1CRUdJTi(?!BDRVJUSUZJ|BQVUJMSUMg)[A-Za-z0-9+/_-]{{40,}}+{_MORE_LINES}"),
    rule("private_key", ("b3blbnnzac1rzxk",), rf"b3BlbnNzaC1rZXk[A-Za-z0-9+/]{{40,}}+{_MORE_LINES}"),
    rule("private_key", ("mii",),
        rf"(?<![A-Za-z0-9+/])MII[A-Za-z0-9+/]{{3}}IBA(?:AK|DAN)[A-Za-z0-9+/]{{40,}}+{_MORE_LINES}"),
    rule("private_key", ("private-lines",), r"(?<=Private-Lines: )\d{1,3}(?:\s{1,2}[A-Za-z0-9+/=]{20,80}+)+"),
    rule("private_key", ("begin ssh2",),
        r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:[^-]++|-(?!---))*+---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
    rule("private_key", ('"d"',), r"\"d\"\s{0,2}:\s{0,2}\"(?P<value>[A-Za-z0-9_-]{40,}+)\""),
)  # fmt: skip

CONTEXTS: Final[Sequence[Rule]] = (*_PRIVATE_KEYS, *_HEADERS, *_ADDRESSES, *_COMMANDS, *_FILES)
