"""Which addresses a pod can connect to. Standard library only; ``serve`` listens instead.

``REACH`` holds addresses as ``host:port``, with commas. The result, JSON of addresses to true or false, is the pod's
termination message, which the API server shows even where nobody may read logs.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

_TIMEOUT_S = 3.0
_PORT = 8000


def reached(address: str) -> bool:
    """Whether a connection comes about."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def main() -> None:
    """Listen for ever, or connect and report."""
    if os.environ.get("SERVE"):
        server = socket.create_server((os.environ["POD_IP"], _PORT))
        while True:
            server.accept()[0].close()
    time.sleep(float(os.environ.get("WAIT_S", "0")))
    text = json.dumps({address: reached(address) for address in os.environ["REACH"].split(",")})
    print(text)
    Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log")).write_text(text)
    sys.exit(0)


if __name__ == "__main__":
    main()
