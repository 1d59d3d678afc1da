"""``python -m benchmarks.parity --upstream CHECKOUT``: every request of a published loop beside ours.

Exit status 0: all requests are equal, or each difference has a name; 1: some difference has none; 2: nothing could be
compared.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.kept import Cells, show
from benchmarks.parity.compare import NAMES, Comparison, compare
from benchmarks.parity.items import CHUNK_TOKENS, Project, items_of
from benchmarks.parity.ours import published_profile, read_all
from benchmarks.parity.scripted_model import ScriptedModel
from benchmarks.parity.upstream import NoUpstream, Upstream
from inference.profile_import.sources import ImportRefused
from memloop.chunking import TokenizerSplitter

TOKENIZER: Final = Path("services/inference/models/memloop-tiny")


async def compared(upstream: Upstream, project: Project) -> list[Comparison]:
    """Read every item with both loops. Raises NoUpstream, ImportRefused."""
    items = items_of(project)
    profile = published_profile(project, upstream.checkout)
    splitter = TokenizerSplitter((upstream.tokenizer / "tokenizer.json").read_bytes())
    chunks = {item.name: len(splitter.split(item.document, chunk_tokens=CHUNK_TOKENS)) for item in items}
    scripts = {item.name: item.replies(chunks[item.name]) for item in items}
    theirs, ours = ScriptedModel(scripts), ScriptedModel(scripts)
    async with theirs.served() as port:
        await upstream.read(project, items, port=port)
    async with ours.served() as port:
        await read_all(project, items, splitter=splitter, profile=profile, port=port)
    return [compare(item.name, theirs.requests.get(item.name, ()), ours.requests.get(item.name, ())) for item in items]


def report(project: str, found: Sequence[Comparison]) -> int:
    """Print the table, the names and the unnamed differences. Returns the exit status."""
    rows: list[Cells] = [
        {
            "item": each.item,
            "their requests": each.theirs,
            "ours": each.ours,
            "messages equal": each.equal,
            "differences": ", ".join([*each.names, *(["UNNAMED"] if each.unnamed else [])]) or "none",
        }
        for each in found
    ]
    show(f"{project} beside Memloop", rows)
    for name in NAMES:
        if any(name in each.names for each in found):
            print(f"{name}: {NAMES[name]}")
    unnamed = [(each.item, difference) for each in found for difference in each.unnamed]
    for item, difference in unnamed:
        print(f"UNNAMED {item}, request {difference.request}: {difference.shown}")
    return 1 if unnamed else 0


def main() -> int:
    """Run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__)
    parser.add_argument("--upstream", type=Path, required=True, metavar="CHECKOUT", help="of MemReread or MemAgent")
    parser.add_argument("--python", default=sys.executable, help="a Python with the checkout's dependencies")
    parser.add_argument("--tokenizer", type=Path, default=TOKENIZER, help="folder with a tokenizer.json")
    arguments = parser.parse_args()
    upstream = Upstream(arguments.upstream, arguments.python, arguments.tokenizer)
    try:
        return max(report(project, asyncio.run(compared(upstream, project))) for project in upstream.projects())
    except (NoUpstream, ImportRefused, OSError) as error:
        print(f"nothing was compared: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
