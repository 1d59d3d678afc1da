"""What we use of webencodings, which has no types."""

PYTHON_NAMES: dict[str, str]

class Encoding:
    name: str

def lookup(label: str) -> Encoding | None: ...
