"""Errors of the command line: one clear line and an exit code."""


class CliError(Exception):
    """An error printed as one line, with ``detail`` (last log lines) below it.

    ``code`` is 2 for invalid input and 1 for a command that failed.
    """

    def __init__(self, message: str, *, code: int = 1, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.detail = detail


class BadInput(CliError):
    """The user's input is invalid."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=2)
