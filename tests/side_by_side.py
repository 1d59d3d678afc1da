"""How `pytest -n` shares the tests out: file by file, and all that start a real engine to one process."""

from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

_WITH_ENGINE = ("tests/contract/", "tests/stack/")


class ByFile(LoadScopeScheduling):
    """A file's tests stay together; one engine at a time is what two cores carry, and what its tests may share."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "engine" if file.startswith(_WITH_ENGINE) else file
