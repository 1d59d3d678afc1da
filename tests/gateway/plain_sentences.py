"""Sentences without secrets: prose, docstrings and read-me texts that are on the machine, and look-alikes by chance."""

import ast
import base64
import random
import re
import string
import sysconfig
import uuid
from collections.abc import Iterator
from importlib.metadata import metadata
from itertools import islice
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_PROSE: Final = ("trainer/trainer/tiny/prose/moby_dick.txt", "trainer/trainer/tiny/prose/addresses.txt")
_MODULES: Final = (
    "argparse", "asyncio/base_events", "collections/__init__", "csv", "datetime", "decimal", "difflib",
    "email/message", "functools", "gzip", "heapq", "http/client", "inspect", "json/__init__", "logging/__init__",
    "mailbox", "optparse", "pathlib", "pickle", "random", "re/__init__", "shutil", "sqlite3/dbapi2", "statistics",
    "string", "subprocess", "tarfile", "textwrap", "threading", "timeit", "tokenize", "typing", "unittest/case",
    "urllib/parse", "uuid", "zipfile",
)  # fmt: skip
_PACKAGES: Final = (
    "aiohttp", "anthropic", "fastapi", "httptools", "hypothesis", "ijson", "mcp", "networkx", "numpy", "openai",
    "orjson", "pydantic", "pytest", "qdrant-client", "redis", "rich", "ruff", "sentence-transformers", "sympy",
    "tokenizers", "transformers", "typer", "uvicorn",
)  # fmt: skip
_END: Final = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


def _sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        flat = " ".join(sentence.split())
        if 20 <= len(flat) <= 600:
            yield flat


def _prose() -> Iterator[str]:
    for name in _PROSE:
        yield from _sentences((_ROOT / name).read_text())


def _docstrings() -> Iterator[str]:
    for name in _MODULES:
        path = Path(sysconfig.get_path("stdlib"), f"{name}.py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _sentences(ast.get_docstring(node) or "")


def _read_me_texts() -> Iterator[str]:
    for name in _PACKAGES:
        yield from _sentences(str(metadata(name).json.get("description", "")))


def look_alikes(seed: int = 20261127) -> Iterator[str]:
    """What is long, or random, or named like a secret, and is none."""
    dice = random.Random(seed)

    def some(alphabet: str, count: int) -> str:
        return "".join(dice.choices(alphabet, k=count))

    def hexadecimal(count: int) -> str:
        return some("0123456789abcdef", count)

    small, letters = string.ascii_lowercase + string.digits, string.ascii_letters + string.digits
    number = dice.randint
    while True:
        image = base64.b64encode(dice.randbytes(240)).decode()
        yield f"git show {hexadecimal(40)} -- src/tokens.py"
        yield f"commit {hexadecimal(40)} fixes the login; cherry-pick {hexadecimal(8)} too."
        yield f"sha256:{hexadecimal(64)} is the digest of the image."
        yield f"The MD5 is {hexadecimal(32)}, the SHA-1 {hexadecimal(40)}, and the SHA-512 {hexadecimal(128)}."
        yield f"integrity sha512-{base64.b64encode(dice.randbytes(64)).decode()}"
        yield f"![logo](data:image/png;base64,iVBORw0KGgo{image})"
        yield f"The job {uuid.UUID(int=dice.getrandbits(128), version=4)} failed after {number(2, 90)} minutes."
        yield f'ETag: "{hexadecimal(32)}" and Last-Modified: yesterday'
        yield f"ISBN 978-{number(0, 9)}-{some(string.digits, 4)}-{some(string.digits, 4)}-{number(0, 9)}"
        yield f"Call the office on +49 30 {some(string.digits, 8)} or 030 {some(string.digits, 7)}."
        yield f"the object key is uploads/2026/{hexadecimal(16)}/photo-{number(1, 99)}.jpg"
        yield f"cache_key=user:{number(1, 999)}:profile and primary_key=order_{number(1, 999)}"
        yield f"public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{some(letters, 43)} bob@laptop"
        yield f"next_page_token={some(letters, 24)}"
        yield f"max_tokens: {number(10, 4096)}, token_count={number(1, 99)}, tokens=[{number(1, 9)}, {number(1, 9)}]"
        yield "def test_that_a_password_reset_token_expires_after_one_hour_of_inactivity(self): pass"
        yield f"https://example.com/{number(2000, 2026)}/how-to-rotate-api-keys-{number(1, 99)}?page={number(2, 9)}"
        yield f"aria-labelledby=tab-{some(small, 10)} class=css-{some(small, 7)}-MuiButtonBase-root-MuiIconButton"
        yield f"com.example.payments.internal.AbstractSingletonProxyFactoryBeanV{number(2, 9)}"
        yield f"python-{number(3, 4)}.{number(8, 14)}.{number(0, 9)}-cp311-cp311-manylinux_2_28_x86_64.whl"
        yield f"chatcmpl-{some(letters, 29)} took {number(100, 900)} ms"
        yield f"request_id: req_{some(letters, 24)}, session took {number(1, 9)} s"
        yield f"arn:aws:iam::{some(string.digits, 12)}:role/deploy-{some(small, 8)}"
        yield f"The tracking number is 1Z{some(string.ascii_uppercase + string.digits, 16)}."
        yield f"pod web-{some(small, 10)}-{some(small, 5)} restarted {number(2, 9)} times"
        yield f"password_hash algorithm: argon2id, password_policy: strong, min_password_length={number(8, 16)}"
        yield f"Authorization: required, cookies: enabled, token_type: bearer, expires_in: {number(60, 3600)}"
        yield f"postgres://db.internal:5432/shop and redis://cache:6379/{number(0, 9)}"
        yield f"See RFC {number(1000, 9999)}, section {number(1, 9)}.{number(1, 9)}, and bug #{number(10000, 99999)}."
        yield f"tx 0x{hexadecimal(64)} was mined; the contract is 0x{hexadecimal(40)}."
        yield f"mysql -u root -p shop < dump-{number(2000, 2026)}.sql && ssh -p {number(1000, 9999)} bob@example.com"
        yield f"keyboard=qwerty-{number(1, 9)} monkey=capuchin{number(1, 9)} author=melville{number(1, 9)}"


def plain_sentences(count: int = 5_000) -> list[str]:
    """So many sentences, a fifth of them look-alikes and the rest from each kind of text alike."""
    fifth = count // 5
    found = list(islice(look_alikes(), fifth))
    for kind in (_docstrings, _read_me_texts):
        found += islice(kind(), fifth)
    return found + list(islice(_prose(), count - len(found)))
