"""Reads a file's bytes from standard input and writes its text as UTF-8 to standard output.

Runs as a separate process that hostile input may crash: it limits its own memory and CPU time before it reads a byte,
and has no access to secrets. Arguments: NAME TYPE BYTES CPU_S OCR. Exits with 0 and what the text lacks on standard
error, or with 3 and the reason there.
"""

import logging
import os
import resource
import sys
from typing import Final

from gateway.extract.kinds import text_of
from gateway.extract.source import Unreadable

UNREADABLE: Final = 3
_NICENESS: Final = 10
"""A tenth of the share of other processes. At 19, a hundredth, files would wait for hours on a full machine."""


def main(name: str, media_type: str, memory_bytes: str, cpu_s: str, ocr: str) -> int:
    """Extract the text and return the exit status."""
    limit_process(int(memory_bytes), int(cpu_s), children=bool(ocr))
    logging.disable()  # standard error carries only the reason
    notes: list[str] = []
    try:
        for part in text_of(sys.stdin.buffer, name=name, media_type=media_type, ocr=ocr, notes=notes):
            sys.stdout.buffer.write(part.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except Unreadable as error:
        return _told(str(error), UNREADABLE)
    except MemoryError:
        return _told("extraction ran out of memory", UNREADABLE)
    except RecursionError:
        return _told("the file is nested too deeply", UNREADABLE)
    except Exception as error:  # noqa: BLE001 - a parser may raise anything; the file is at fault
        return _told(f"the file is damaged ({type(error).__name__})", UNREADABLE)
    return _told(f"left out or replaced: {'; '.join(notes)}" if notes else "", 0)


def limit_process(memory_bytes: int, cpu_s: int, *, children: bool) -> None:
    """Limit memory and CPU time; forbid files, core dumps and child processes; let other work go first.

    Only Tesseract needs children; each has these limits too.
    """
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))  # SIGXCPU, which says why; a second later SIGKILL
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE) + (() if children else (resource.RLIMIT_NPROC,)):
        resource.setrlimit(kind, (0, 0))


def _told(line: str, status: int) -> int:
    sys.stderr.write(" ".join(line.split()))
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    status = main(*sys.argv[1:6])
    sys.stdout.buffer.flush()
    os._exit(status)
