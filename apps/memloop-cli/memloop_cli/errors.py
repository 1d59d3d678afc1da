"""What goes wrong at the command line, as one clear line and an exit code."""


class CliError(Exception):
    """Said to the user as one line; ``detail`` (last log lines) goes below it.

    ``code`` 2: the command was given something that it cannot take; 1: it could not be done.
    """

    def __init__(self, message: str, *, code: int = 1, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.detail = detail


class BadInput(CliError):
    """The user's input cannot be taken."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=2)
