"""The forms of the keys that services hand out: how each begins, and what follows.

Other secrets have the name of the setting that holds them: ``PGPASSWORD=…``, ``"apiKey": "…"``, ``("AUTH_KEY", "…")``.
"""

import re
from typing import Final

from gateway.policy.redaction import checks
from gateway.policy.redaction.checks import is_random

_BEGINNINGS: Final = """
sk- sk_ pk- pk_ rk_ rk- ml- ml_ mlp- mlp_ key- key_ whsec_ whsec- hf_ api_org_ npm_ pypi- secret_ secret- figd_ figu_
tskey- tskey_ re_ pat_ pat- rubygems_ vercel_ vcp_ vci_ vca_ vcr_ vck_ glpat- glptt- gldt- glrt- glrtr- glcbt- glft-
glffct- glimt- glagent- gloas- glsoat- glwt- GR1348941 glsa_ glc_ shpat_ shpss_ shpca_ shppa_ shpua_ dckr_pat_
dckr_oat_ xai- gsk_ csk- r8_ pplx- ntn_ sntrys_ sntryu_ sntrya_ sntryi_ rpa_ fw_ fpk_ tgp_v1_ dp.pt. dp.st. dp.ct.
dp.sa. dp.scim. dp.audit. hvs. hvb. hvr. pscale_tkn_ pscale_oauth_ pscale_pw_ ctx7sk- nvapi- jina_ pa- al- pcsk_ fc-
tvly- BSA lsv2_pt_ lsv2_sk_ ls__ apify_api_ bb_live_ bb_test_ wandb_v1_ phc_ phx_ phs_ e2b_ sb_secret_ sb_publishable_
sbp_ sgp_ rnd_ nfp_ nfc_ nfo_ nfu_ napi_ mdb_sa_sk_ CCDB1_ dapi dkea dose AVNS_ essu_ cfut_ cfat_ cfk_ dop_v1_ doo_v1_
dor_v1_ pul- PMAK- PMAT- NRAK- NRII- NRIQ- NRAL- NRRA- NRJS- NRSP- dt0c01. dt0s01. dt0s02. dt0s03. dt0s04. dt0s06.
dt0s08. dt0s16. lin_api_ lin_oauth_ lin_wh_ xkeysib- xsmtpsib- mlsn. shippo_live_ shippo_test_ duffel_live_
duffel_test_ FLWSECK- FLWSECK_TEST- FLWPUBK- FLWPUBK_TEST- rzp_live_ rzp_test_ live_ test_ sq0atp- sq0csp- sq0idp-
EAAA EAAl LTAI AKID AKLT pnu_ pnb_ oy2 CLOJARS_ cio sha256~ CFPAT- squ_ sqp_ sqa_ sqb_ CCIPAT_ CCIPRJ_ bkua_ bkct_
snyk_uat. snyk_sat. AKCp cmVmd reftkn API- ATTA ATATT3 ATCTT3 ATSTT3 ATBB ATOA hcaik_ hcbik_ hcalk_ hcxik_ pylf_v1_
statsig- console- SCW ops_ fo1_ fm1r_ fm1a_ fm2_ p8e- tfp_ rdme_ tk-us- EZAK EZTK fio-u- dnkey- live_pub_ test_pub_
sm_aat_ sm_pat_ sm_sat_ s-s4t2ud- s-s4t2af- sec-c- pub-c- sub-c- ABSK HRKU- tr_dev_ tr_prod_ tr_pat_ plane_api_
cal_live_ cal_ m0- AQ. 1//0 EAAC EAAG EAAM EAAB IGQV IGAA sl. sl.u. FlyV1 pdl_live_apikey_ pdl_sdbx_apikey_ api-live-
sdk- mob- ld-sdk- inngest_ signkey- tines_ turso_ vapi_ zpka_ goog_ appl_ project-live- secret-live- secret-test-
access-sandbox- access-production- access-development- hrku- cfp_ ghu_ ghs_ gho_ ghp_ ghr_ ory_st_ ory_at_ ory_rt_
ory_pat_ sgamp_ crsr_ key_live_ key_test_ kgat_ pk_prod_ pdt_ mfa. oauth2_ jotf_ ASIA gpat- waka_ ptla_ ptlc_ xnd_
APP_USR- TEST- unkey_ nango_ gh_app_ ddapi_ tkn_ tok_ token_ auth_ access_ refresh_ sess- bearer_ apikey_ api_key_
api- api_
"""
BEGINNINGS: Final = tuple(dict.fromkeys(_BEGINNINGS.split()))
"""How keys begin. Words may begin so too: behind it a key looks random."""
_LIKE_WORDS: Final = """
live_ test_ prod_ api- api_ auth_ token_ access_ refresh_ tok_ tkn_ bearer_ console- sdk- mob-
goog_ appl_ al- pa- cio dose dkea fc- cal_ BSA TEST- API- SCW b_ pub-c-
oy2 sl. EAAA AKID LTAI
"""
_WORDS: Final = frozenset(_LIKE_WORDS.split())
"""Beginnings that many other words have."""
CANDIDATE: Final = r"(?<![A-Za-z0-9_-])(?P<value>[A-Za-z0-9][A-Za-z0-9_./~$-]{15,}+=*+)"
_MARKED: Final = re.compile(
    r"[A-Za-z0-9]{2,16}(?:[-_][A-Za-z0-9]{1,10}){0,2}[-_](?:live|test|prod|sandbox|dev|sk|pk|pat|key|secret|token|api|oauth)"
    r"[-_]"
)
"""Services of which we never heard begin their keys so, too."""

_AZURE: Final = r"\+ASt|ACDb|AzFu|AzSe|AzCa|AzEc|\+AMC|\+ACR|APIM"
FORMATS: Final[tuple[tuple[str, str], ...]] = (
    ("akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aiza", r"AIza[A-Za-z0-9_-]{30,}+"),
    ("ya29.", r"ya29\.[A-Za-z0-9_-]{20,}+"),
    ("gocspx-", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    ("1//0", r"1//0[A-Za-z0-9_-]{30,}+"),
    ("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[opusr]_[A-Za-z0-9]{30,}+"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{22,}+"),
    ("xox", r"xox[abcdeoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{10,}+"),
    ("xapp- xwfp-", r"(?:xapp-\d|xwfp)-[A-Za-z0-9-]{20,}+"),
    ("sg.", r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{32,}+"),
    ("sk", r"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    (":aa", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    ("-us", r"[a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9])"),
    ("age-secret-key-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    ("atatt3 atctt3 atstt3", r"AT[ACS]TT3[A-Za-z0-9_=-]{50,}+"),
    ("bbdc-", r"BBDC-[A-Za-z0-9+/]{40,}+=*+"),
    ("fm2_ fm1", r"fm(?:2|1[ar])_[A-Za-z0-9+/]{40,}+=*+"),
    (".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}+"),
    ("_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])"),
    ("q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9])"),
    ("azdo", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"),
    ("jqqj99", r"[A-Za-z0-9]{44,52}JQQJ9{2}[A-Za-z0-9]{20,32}(?![A-Za-z0-9])"),
    ("+ast acdb azfu azse azca azec +amc +acr apim",
     rf"[A-Za-z0-9+/]{{38,84}}(?:{_AZURE})[A-Za-z0-9+/]{{2,10}}={{0,2}}(?![A-Za-z0-9])"),
    ("apa91b", r"[A-Za-z0-9_-]{11,22}:APA91b[A-Za-z0-9_-]{100,}+"),
    ("aaaaaaaaaaaaaaaaaaaaa", r"A{20,22}[A-Za-z0-9%]{60,120}+"),
    ("iqoj fwog fqog", r"(?:IQoJ|FwoG|FQoG)[A-Za-z0-9+/=]{60,}+"),
    ("amzn.mws.", r"amzn\.mws\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("amzn1.oa2-cs.", r"amzn1\.oa2-cs\.v1\.[0-9a-f]{40,}+"),
    ("access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("0/ 1/ 2/", r"[012]/\d{10,20}(?:/\d{10,20})?:[a-z0-9]{32}(?![A-Za-z0-9])"),
    ("-na1- -na2- -eu1- -ap1-", r"(?:pat|ctr?)-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("api- sdk- mob-", r"(?:api|sdk|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![A-Za-z0-9])"),
    ("00d", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{80,120}+"),
    ("sk-lf- pk-lf-", r"[sp]k-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("nrii- nriq- nral- nrra- nrsp-", r"NR(?:II|IQ|AL|RA|SP)-[A-Za-z0-9_-]{27,36}+"),
    ("a3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Za-z0-9])"),
    ("hrku-", r"HRKU-(?:AA[A-Za-z0-9_-]{50,}+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"),
    ("sq0 eaaa", r"(?:sq0(?:atp|csp|idp)-|EAAA)[A-Za-z0-9_-]{22,}+"),
    ("xprv yprv zprv", r"[xyz]prv[A-Za-z0-9]{100,112}(?![A-Za-z0-9])"),
    ("scw", r"SCW[A-Z0-9]{17}(?![A-Za-z0-9])"),
    ("eyj", r"(?:sntrys_|ops_|glc_|sk\.|tk\.)eyJ[A-Za-z0-9+/_-]{30,}+(?:\.[A-Za-z0-9_-]{20,}+)?={0,2}"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("ck_ cs_", r"c[ks]_[0-9a-f]{40}(?![A-Za-z0-9])"),
    (".", r"[MNO][A-Za-z0-9_-]{23,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"),
    ("v1.local. v2.local. v3.local. v4.local.", r"v[1-4]\.local\.[A-Za-z0-9_-]{40,}+"),
)  # fmt: skip
"""The forms that are more than a beginning: what a text in lower case holds where one is, and the pattern."""


def is_key(word: str) -> bool:
    """Return whether a word begins as a service's keys do, and looks random behind it."""
    if not _DIGIT.search(word):
        return False
    beginning, is_known = "", False
    if word.startswith(BEGINNINGS):
        beginning = max((start for start in BEGINNINGS if word.startswith(start)), key=len)
        is_known = beginning not in _WORDS
    elif (marked := _MARKED.match(word)) is not None:
        beginning = marked[0]
    rest = word[len(beginning) :]
    return bool(beginning) and (is_generated(rest) or (is_known and is_random(re.sub("[./~$]", "-", rest))))


def is_generated(text: str) -> bool:
    """Return whether a part between ``-``, ``_`` and ``.`` is long and changes between letters and digits often."""
    # Words in camel case have a run for five characters or more, random letters and digits one for two to three
    return any(
        len(part) >= 12
        and any(map(str.isdigit, part))
        and any(map(str.isalpha, part))
        and 4 * len(_RUNS.findall(part)) >= len(part)
        for part in re.split(r"[-_./~$]", text)
    )


_DIGIT: Final = re.compile(r"\d")
_RUNS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


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
