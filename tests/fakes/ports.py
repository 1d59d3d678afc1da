"""Loopback ports that no two test processes of a machine share. Standard library only."""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final

_PORTS: Final = range(20_000, 32_700)
"""Above those of Ray's workers, below those that Linux gives to clients: no connection takes one before its server."""
_TRIES: Final = 1000

_taken: Final = set[int]()
_locks: Final[list[int]] = []
_random: Final = random.Random()  # of its own: a test's seed must not choose ports


def free_port(*beside: int) -> int:
    """Return a free port that stays reserved for this process until it ends.

    ``beside`` are distances: the ports so far above the returned one are free and reserved too.
    """
    for _ in range(_TRIES):
        first = _random.choice(_PORTS)
        if _reserve([first, *(first + distance for distance in beside)]):
            return first
    raise RuntimeError(f"no free port in {_TRIES} tries")


def _reserve(ports: list[int]) -> bool:
    if any(port not in _PORTS or port in _taken or not _lock(port) for port in ports):
        return False
    _taken.update(ports)
    return all(_is_free(port) for port in ports)


def _lock(port: int) -> bool:
    """Lock the port's byte in a file of all test processes. The system unlocks it when the process ends."""
    if not _locks:
        path = Path(tempfile.gettempdir(), f"memloop-test-ports-{os.getuid()}")
        _locks.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    try:
        fcntl.lockf(_locks[0], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
