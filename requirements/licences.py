#!/usr/bin/env python3
"""Lists the licences of what the workspace's lock installs, and checks them against the policy: ``licences.py``.

It runs in the environment that the lock made, prints the page ``docs/third-party-licences.md``, and exits with 1 when a
licence is neither permissive nor an exception with a reason. Standard library only.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

LOCK: Final = Path(__file__).parent / "workspace.lock"
PERMISSIVE: Final = re.compile(
    r"Apache|MIT|BSD|0BSD|ISC|PSF|Python Software Foundation|CNRI-Python|Zlib|BSL-1\.0|CC0-1\.0|Unlicense|MPL|Mozilla"
)
"""Licences that set no terms for code that uses the package. MPL covers its own files only."""
EXCEPTIONS: Final[Mapping[str, str]] = {
    "chardetng-py": "MIT by its LICENSE file; the metadata names none",
    "intel-cmplr-lib-ur": "Intel's runtime, of torch for CPUs: free to use and to pass on, no source",
    "intel-openmp": "Intel's runtime, of torch for CPUs: free to use and to pass on, no source",
    "oss-harmony": "Apache-2.0 by its LICENSE file; the metadata names none",
    "pycountry": "LGPL-2.1-only: a dependency of vLLM, installed unchanged, not in our images of gateway and store",
    "setuptools": "MIT by its LICENSE file; the metadata names none",
}
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_HEAD: Final = """# Third-party licences

What `requirements/workspace.lock` installs. `.venv/bin/python requirements/licences.py` prints this page and refuses a
licence that is not permissive, unless it is an exception with a reason.

| Package | Licence | Exception |
|---|---|---|
"""


def licence_of(metadata: Distribution) -> str:
    """The licence that a package names: its expression, else its classifiers, else the first line of its text."""
    fields = metadata.metadata
    classifiers = [name for name in fields.get_all("Classifier") or [] if name.startswith("License :: ")]
    named = "; ".join(name.rpartition(" :: ")[2] for name in classifiers if name != "License :: OSI Approved")
    return fields["License-Expression"] or named or (fields["License"] or "").partition("\n")[0] or "not named"


def rows() -> Iterator[tuple[str, str, str]]:
    """Name, licence and reason of an exception, for each package of the lock that is installed here."""
    for name in sorted(set(_PINNED.findall(LOCK.read_text()))):
        try:
            licence = licence_of(distribution(name))
        except PackageNotFoundError:
            continue  # for another platform
        yield name, licence, EXCEPTIONS.get(name, "")


def refused() -> list[str]:
    """The packages that the policy does not allow, with their licences."""
    return [f"{name}: {licence}" for name, licence, why in rows() if not why and not PERMISSIVE.search(licence)]


def page() -> str:
    """The page of all licences."""
    return _HEAD + "".join(f"| {name} | {licence} | {why} |\n" for name, licence, why in rows())


if __name__ == "__main__":
    print(page(), end="")
    if against := refused():
        sys.exit("The policy does not allow: " + ", ".join(against))
