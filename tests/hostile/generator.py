"""Runs one abuser in a process of its own, at the lowest priority.

``python -m tests.hostile.generator NAME URL SECONDS``

Prints how many requests ended how, as one JSON object.
"""

import argparse
import asyncio
import json
import os
from contextlib import suppress

from tests.hostile.abusers import ALL
from tests.hostile.abusing import Abuse, abusing

_NICER = 19
"""Abusers have machines of their own: theirs takes the cores that the stack leaves."""


async def run(name: str, url: str, seconds: float) -> Abuse:
    """Abuse the gateway for so long."""
    async with abusing(url) as it:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await ALL[name](it)
        return it


def main() -> None:
    """Run the abuser of the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(ALL))
    parser.add_argument("url")
    parser.add_argument("seconds", type=float)
    asked = parser.parse_args()
    os.nice(_NICER)
    print(json.dumps(asyncio.run(run(asked.name, asked.url, asked.seconds)).ended))


if __name__ == "__main__":
    main()
