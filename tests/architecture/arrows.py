"""Counts who imports whom inside a package. Run: ``python tests/architecture/arrows.py FOLDER…``."""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeAlias

Arrow: TypeAlias = tuple[str, str]
"""The importer and the imported, by their dotted names."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package's modules and the imports between them. A folder is the first part of a name below the package."""

    name: str
    modules: frozenset[str]
    arrows: frozenset[Arrow]

    @property
    def root_modules(self) -> set[str]:
        """The modules that lie in no folder."""
        return {parts[0] for name in self.modules if len(parts := self._below(name)) == 1} - self.folders

    @property
    def folders(self) -> set[str]:
        """The folders at the package's root."""
        return {parts[0] for name in self.modules if len(parts := self._below(name)) > 1}

    @property
    def crossing(self) -> set[Arrow]:
        """The arrows between modules that lie in different folders, or in one and at the root."""
        return {(one, other) for one, other in self.arrows if self._folder(one) != self._folder(other)}

    @property
    def between_folders(self) -> set[Arrow]:
        """The crossing arrows with a folder at both ends."""
        return {(one, other) for one, other in self.crossing if self._folder(one) and self._folder(other)}

    @property
    def folder_arrows(self) -> set[Arrow]:
        """The arrows between folders, each counted once."""
        return {(self._folder(one), self._folder(other)) for one, other in self.between_folders}

    @property
    def folder_cycle(self) -> list[str]:
        """Folders that import one another in a circle; empty without one."""
        graph: Mapping[str, set[str]] = {
            folder: {other for one, other in self.folder_arrows if one == folder} for folder in self.folders
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def _below(self, module: str) -> list[str]:
        return module.split(".")[1:]

    def _folder(self, module: str) -> str:
        """Empty for a module at the root."""
        parts = self._below(module)
        return parts[0] if parts and parts[0] in self.folders else ""


def read_package(root: Path) -> Package:
    """The package in the folder ``root``."""
    paths = {_name(path, root): path for path in root.rglob("*.py")}
    modules = frozenset(paths)
    arrows = {
        (name, target)
        for name, path in paths.items()
        for target in _imported(path, modules)
        if target not in (name, root.name)
    }
    return Package(root.name, modules, frozenset(arrows))


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, modules: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                yield deeper if deeper in modules else str(node.module)


def main() -> None:
    """Print the figures of each package named on the command line."""
    for folder in sys.argv[1:]:
        package = read_package(Path(folder))
        print(
            f"{package.name}: {len(package.modules)} modules, {len(package.arrows)} arrows between modules, "
            f"{len(package.crossing)} cross folders or the root, {len(package.between_folders)} lead from folder to "
            f"folder; {len(package.folder_arrows)} arrows between folders, "
            f"cycle of folders: {' -> '.join(package.folder_cycle) or 'none'}"
        )


if __name__ == "__main__":
    main()
