"""uv installs from where pip would: what ``requirements/uv.py`` makes of pip's configuration."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "requirements/uv.py"
environment: Callable[[str], dict[str, str]] = runpy.run_path(str(SCRIPT))["environment"]
ALIKE = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


@pytest.mark.parametrize(
    ("configured", "variables"),
    [
        ("", {}),
        ("global.index-url='https://a/simple'", {"UV_DEFAULT_INDEX": "https://a/simple"}),
        ("global.extra-index-url='\\nfile:///a\\nfile:///b'", {"UV_INDEX": "file:///a file:///b"}),
        (":env:.find-links='/wheels https://a/wheels'", {"UV_FIND_LINKS": "/wheels,https://a/wheels"}),
        (":env:.cert='/a.pem'\n:env:.default-timeout='180'", {"SSL_CERT_FILE": "/a.pem", "UV_HTTP_TIMEOUT": "180"}),
        ("global.trusted-host='a b'\nglobal.proxy='http://p'", {"UV_INSECURE_HOST": "a b", "ALL_PROXY": "http://p"}),
        ("global.constraint='/c.txt'\nglobal.no-index='true'", {"UV_NO_INDEX": "true"}),
    ],
)
def test_an_option_of_pips_has_its_variable_of_uvs(configured: str, variables: dict[str, str]) -> None:
    assert environment(configured) == ALIKE | variables


def test_a_variable_is_over_the_section_of_the_command_and_that_over_the_general_one() -> None:
    lines = [":env:.index-url='http://c'", "global.index-url='http://a'", "install.index-url='http://b'"]
    found = [environment("\n".join(lines[at:]))["UV_DEFAULT_INDEX"] for at in range(3)]
    assert found == ["http://c", "http://b", "http://b"]
