"""The program ``memloop``: what it needs before its modules are loaded."""

import io
import signal
import sys


def main() -> None:
    """Run the command line.

    Loading takes a second, in which Ctrl-C ends the process without a traceback. A terminal whose encoding lacks a
    character gets its escape.
    """
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # else the shell wants it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from memloop_cli.main import app

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGINT, interrupt)
    try:
        sys.exit(app())
    except KeyboardInterrupt:  # while the commands are put together: later it is theirs
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
