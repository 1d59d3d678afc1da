#!/usr/bin/env python3
"""A component of the local stack: ``/readyz`` on a port, a diary of its life, and ways to misbehave.

Arguments: name, port, diary file, then any of ``dies`` (before it is ready), ``never-ready``, ``slow`` (half a second).
Only the standard library, so that it starts at once.
"""

import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType

NAME, PORT, DIARY = (sys.argv[1:4] + [""] * 3)[:3]
HOW = sys.argv[4:]


def note(what: str) -> None:
    with Path(DIARY).open("a") as diary:
        diary.write(f"{what} {NAME} {os.getpid()}\n")


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if "never-ready" in HOW else 200)
        self.send_header("content-length", "7")
        self.end_headers()
        self.wfile.write(b"waiting")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """No access log."""


def stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    note("stop")
    os._exit(0)


def main() -> None:
    note("start")
    signal.signal(signal.SIGTERM, stop)
    print(f"{NAME} says hello", flush=True)
    if "dies" in HOW:
        print("KeyError: 'no configuration'", flush=True)
        sys.exit(5)
    if "slow" in HOW:
        time.sleep(0.5)
    server = ThreadingHTTPServer(("127.0.0.1", int(PORT)), Answers)
    note("serve")
    server.serve_forever()


if __name__ == "__main__":
    main()
