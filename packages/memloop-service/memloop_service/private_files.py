"""Keeps the files of a process from other users of the machine: memories and documents lie in them."""

import logging
import os
import stat
from pathlib import Path
from typing import Final

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_log = logging.getLogger(__name__)


def make_files_private() -> None:
    """Give every file and folder that this process and its children make to its user alone (0600, 0700)."""
    os.umask(_OTHERS)


def make_private(folder: Path) -> None:
    """Close an existing folder to other users (0700), and so all that is in it; warn where that is not allowed."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & _OTHERS:
        return
    try:
        folder.chmod(mode & ~_OTHERS)
    except PermissionError:
        _log.warning("other users may read %s: its mode is %o, and this process may not change it", folder, mode)
    else:
        _log.info("%s had the mode %o and is this user's alone now", folder, mode)
