"""A small disk of its own for a test, a tmpfs, and a file that fills it."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def small_disk(folder: Path, *, size_bytes: int) -> Generator[Path]:
    """Mount an empty disk of that size at a new folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def weigh_down(ballast: Path, *, leave: int) -> None:
    """Another program's file takes the disk but for so many bytes, whoever else writes at the same time."""
    ballast.unlink(missing_ok=True)
    while (size := shutil.disk_usage(ballast.parent).free - leave) > 0:
        with ballast.open("wb") as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, size)
            return
