"""Parses a command line with SGLang's own argument parser; prints what it understood.

SGLang's wheel lies in a folder of its own, whose path is the first argument: it is read, not installed, for it wants
CUDA. What its import needs beside what is here is not needed to parse: two packages are stood in for.
"""

import argparse
import importlib.abc
import importlib.machinery
import json
import sys
import types
from collections.abc import Sequence
from unittest.mock import MagicMock

_ABSENT = {"triton", "IPython"}


class _Standin(types.ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


class _Standins(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] not in _ABSENT:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Standin(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    sys.meta_path.append(_Standins())
    from sglang.srt.server_args import ServerArgs  # type: ignore[import-not-found] # pyright: ignore

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)  # pyright: ignore[reportUnknownMemberType]
    print(json.dumps(vars(parser.parse_args(sys.argv[2:])), default=str))


if __name__ == "__main__":
    main()
