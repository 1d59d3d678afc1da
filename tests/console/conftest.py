"""The browser tests of the console: ``make test-console``."""

import pytest

from gateway.console.routes import PACKAGED
from tests.console.browser import CHROMIUM


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a Chromium or a built console there is nothing to test, and a run that must not skip says so."""
    missing = [
        what
        for what, is_there in (
            ("a Chromium (apt-get install chromium)", CHROMIUM),
            ("the built console (make console)", (PACKAGED / "index.html").is_file()),
        )
        if not is_there
    ]
    if missing:
        pytest.exit(f"the console's tests need {' and '.join(missing)}", returncode=2)
    del items
