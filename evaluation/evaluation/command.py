"""``memloop-evaluate EVALUATION …``: each evaluation has its own command line and is imported only when chosen.

The last line of each is one JSON object.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

EVALUATIONS: Final[Mapping[str, tuple[str, str]]] = {
    "compare": ("evaluation.compare.command", "compare two runs of memory or ruler, with intervals by category"),
    "fetch": ("evaluation.fetch.command", "download a public file of a published benchmark, with its licence"),
    "memory": ("evaluation.memory.command", "judge the memory on a LoCoMo, LongMemEval or HaluMem file"),
    "languages": ("evaluation.languages.command", "measure recall on the same facts in eight languages"),
    "retrieval": ("evaluation.retrieval.command", "measure recall with and without each trick of retrieval"),
    "updates": ("evaluation.updates.command", "count changed facts that are replaced and other facts that are kept"),
    "published": (
        "evaluation.published.command",
        "make a publication's table under its conditions, beside its figures",
    ),
    "ruler": ("evaluation.ruler.command", "score long reads of RULER-HQA and RULER files"),
}
"""By name: the module with its ``main(arguments)``, and its help line."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run an evaluation with the arguments after its name. Exits with 2 if the name is missing or unknown."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in EVALUATIONS:
        asked_for_help = bool(given) and given[0] in ("-h", "--help")
        print(_usage(), file=sys.stdout if asked_for_help else sys.stderr)
        sys.exit(0 if asked_for_help else 2)
    module = importlib.import_module(EVALUATIONS[given[0]][0])
    cast(Callable[[Sequence[str]], None], module.main)(given[1:])


def _usage() -> str:
    lines = (f"  {name:<10} {help_}" for name, (_, help_) in EVALUATIONS.items())
    return "usage: memloop-evaluate EVALUATION …\n\n" + "\n".join(lines)
