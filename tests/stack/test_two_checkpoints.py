"""``memloop up`` with both tiny checkpoints: one writes, relates and chats, the other one reads documents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.local_stack import LocalStack

pytestmark = [pytest.mark.engine, pytest.mark.slow]
_PROSE = "The whale swam on, and the ship went after it through the night. " * 40


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    models = {"MEMLOOP_MODEL": "memloop-tiny-writer", "MEMLOOP_READER_MODEL": "memloop-tiny"}
    started = LocalStack(tmp_path_factory.mktemp("home"), **models)
    result = started.up()
    assert result.returncode == 0, result.stdout + result.stderr
    yield started
    started.memloop("down")


def test_the_writer_replaces_a_changed_fact_under_another_key(stack: LocalStack) -> None:
    added = stack.memloop("memory", "add", "--as-it-is", "--user", "ann", "My locker code is 731.")
    assert added.returncode == 0, added.stderr
    told = stack.memloop("chat", "--user", "ann", "--no-thinking", typed="My locker code is 482.\n")
    assert "stored   The locker code of the user is 482." in told.stdout
    listed = stack.memloop("memory", "list", "--user", "ann").stdout
    assert "482" in listed
    assert "code is 731" not in listed  # an id may hold the digits


def test_the_reader_reads_a_document(stack: LocalStack, tmp_path: Path) -> None:
    document = tmp_path / "document.txt"
    document.write_text(f"{_PROSE}The vault code of Marta is 731. {_PROSE}")
    result = stack.memloop("read", str(document), "What is the vault code of Marta?")
    assert result.returncode == 0, result.stderr
    assert "answer  731" in result.stdout
