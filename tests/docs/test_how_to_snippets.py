"""The code of the how-to pages runs against a whole gateway, and its answers have the fields that the pages show.

Not run here: `train-an-agent.md`, which tests/trainer_verl follows on real verl, and `checkpoint-to-production.md`,
whose steps need training and several engines: tests/stack/test_rollout.py takes them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.running import ROOT, printed_by
from tests.docs.shapes import missing
from tests.docs.snippets import Snippet, fits, snippets
from tests.gateway.whole import Whole

ELSEWHERE = {"checkpoint-to-production", "train-an-agent"}
PAGES = {
    page: found
    for page in (ROOT / "docs/api.md", *sorted(ROOT.glob("docs/how-to/*.md")))
    if page.stem not in ELSEWHERE and (found := list(snippets(page.read_text("utf-8"))))
}
MEMORIES = {"Ada is allergic to nuts.": ["health", "pinned"], "Ada lives in Oslo.": []}
"""What is stored before a page begins, with its tags."""
FILES = {"keys.md": "The spare key lies under the third stone of the garden.\n"}


def answers(printed: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that were printed, one after another."""
    decoder = json.JSONDecoder()
    rest = printed.strip()
    while rest.startswith("{"):
        value, end = decoder.raw_decode(rest)
        yield value
        rest = rest[end:].strip()


def faults(snippet: Snippet, printed: str) -> list[str]:
    """What differs from the page. An answer that is an error differs if the page does not show one."""
    found = list(answers(printed))
    refused = [str(answer["error"]) for answer in found if answer.get("error")]
    if snippet.output is None:
        return refused
    if snippet.output.startswith("{"):
        return missing(json.loads(snippet.output), found[-1] if found else printed)
    return [] if fits(snippet.output, printed) else [printed]


async def remember(it: Whole, memory: str, tags: list[str]) -> None:
    body = {"user_id": "ada", "infer": False, "messages": [{"role": "user", "content": memory}]}
    added = await it.gateway.post("/v1/memory/add", body)
    place = f"{it.gateway.url}/v1/memory/{added.json['memories'][0]['item']['id']}"
    async with it.gateway.http.patch(place, json={"tags": tags}) as patched:
        assert patched.status == 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_a_pages_code_runs_and_gets_what_the_page_shows(
    page: Path, it: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for memory, tags in MEMORIES.items():
        await remember(it, memory, tags)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for snippet in PAGES[page]:
        printed = await printed_by(snippet, url=it.gateway.url, folder=tmp_path, names=names)
        assert faults(snippet, printed) == [], f"{page.name}:{snippet.line}"


def test_the_number_of_blocks_that_are_run(record_property: Any) -> None:
    blocks = sum(len(found) for found in PAGES.values())
    print(f"{blocks} blocks on {len(PAGES)} pages are run")
    record_property("blocks", blocks)
    assert blocks >= 17


@pytest.mark.parametrize(
    ("output", "printed", "fit"),
    [
        (None, '{"id": 1}', True),
        (None, '{"error": {"message": "no"}}', False),
        ('{"id": "a…", "n": 1}\n', '{"id": "xy", "n": 2.5, "more": []}', True),
        ('{"id": "a…"}\n', '{"other": 1}', False),
        ('{"data": [{"id": "a"}]}\n', '{"data": []}', False),
        ('{"data": [{"id": "a"}], "…": "…"}\n', '{"data": [{"x": 1}, {"id": "b"}]}', True),
    ],
)
def test_an_answer_of_another_shape_is_noticed(output: str | None, printed: str, *, fit: bool) -> None:
    assert (faults(Snippet("bash", "", 1, output), printed) == []) is fit
