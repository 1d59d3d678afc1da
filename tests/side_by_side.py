"""How `pytest -n` shares the tests out: file by file, but what loads the same heavy thing goes to one process."""

from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

_EMBEDDING = ("bundled_encoder", "compiled_model", "embedder", "retrieval")
_TOGETHER = {
    "engine": ("tests/contract/", "tests/stack/test_local_stack.py"),
    "embedding model": tuple(f"tests/memory_store/test_{name}.py" for name in _EMBEDDING),
}
"""One real engine at a time is what two cores carry; sentence-transformers takes ten seconds to import."""


class ByFile(LoadScopeScheduling):
    """A file's tests stay together, and so do the files of a group."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((group for group, files in _TOGETHER.items() if file.startswith(files)), file)
