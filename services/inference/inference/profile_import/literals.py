"""Evaluates the literals of Python sources from their syntax tree, without running any of their code."""

import ast
import string
from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeAlias, cast

from inference.profile_import.sources import MOST_BYTES, ImportRefused

HOLE: Final = "\ud800"
"""Stands in a text for an expression whose value the source does not write out. No UTF-8 text holds it."""
Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"
_BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError)
_STRIPS: Final = ("strip", "lstrip", "rstrip")


def parse_python(source: bytes | str, where: str) -> ast.Module:
    """Parse a source. Raises ImportRefused."""
    try:
        return ast.parse(source)
    except _BROKEN as error:
        raise ImportRefused(f"{where}: expected Python; found a source that cannot be parsed: {error}") from error


class Literals:
    """Follows assignments in source order, so that a name has its latest value.

    Raises ImportRefused for lone surrogates and oversized values: all names together may hold ``MOST_BYTES``, so that a
    source cannot exhaust the memory by ``a = a + a``.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._names: dict[str, Value] = {}
        self._left = MOST_BYTES

    def lists(self, tree: ast.Module) -> Iterator[list[Value]]:
        """Yield every list literal in source order; assigns names on the way."""
        for statement in _in_order(tree):
            found = [self.value(part) for part in _expressions(statement) if isinstance(part, ast.List)]
            yield from (value for value in found if isinstance(value, list))
            self._assign(statement)

    def texts(self, tree: ast.Module) -> dict[str, str]:
        """Return the module's own names that hold texts. A name bound twice, in any scope, has no certain value."""
        bound = Counter(name for statement in _in_order(tree) for name in _bound(statement))
        for statement in tree.body:
            self._assign(statement)
        return {name: value for name, value in self._names.items() if isinstance(value, str) and bound[name] == 1}

    def value(self, node: ast.expr) -> Value:
        """Return the expression's value, with ``HOLE`` for everything that only running it would show."""
        match node:
            case ast.Constant(value=str() | int() | float() | None as constant):
                if isinstance(constant, str) and any("\ud800" <= char <= "\udfff" for char in constant):
                    raise ImportRefused(f"{self._where}: expected texts; found one with a lone surrogate")
                return constant
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item) for item in items]
            case ast.Dict(keys=keys, values=values):
                names = [self.value(key) if key is not None else HOLE for key in keys]
                if not all(isinstance(name, str) and HOLE not in name for name in names):
                    return HOLE
                return {cast(str, name): self.value(value) for name, value in zip(names, values, strict=True)}
            case ast.Name(id=name):
                value = self._names.get(name, HOLE)
                self._charge(value)
                return value
            case _:
                return self._made(node)

    def _made(self, node: ast.expr) -> Value:
        match node:
            case ast.JoinedStr(values=parts):
                return self._joined("", [self.value(part) for part in parts])
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self.value(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._sum(self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Call():
                return self._call(node)
            case _:
                return HOLE

    def _assign(self, statement: ast.stmt) -> None:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._names[name] = self.value(value)
            case _:
                self._names |= dict.fromkeys(_bound(statement), HOLE)

    def _sum(self, left: Value, right: Value) -> Value:
        if isinstance(left, str) and isinstance(right, str):
            return left + right
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        return HOLE

    def _call(self, call: ast.Call) -> Value:
        match call:
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=pairs) if all(pair.arg for pair in pairs):
                return {str(pair.arg): self.value(pair.value) for pair in pairs}
            case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=[], keywords=[]) if attr in _STRIPS:
                text = self.value(owner)
                return cast(str, getattr(text, attr)()) if isinstance(text, str) else HOLE
            case ast.Call(func=ast.Attribute(value=owner, attr="join"), args=[items], keywords=[]):
                glue, parts = self.value(owner), self.value(items)
                return self._joined(glue, parts) if isinstance(glue, str) and isinstance(parts, list) else HOLE
            case ast.Call(func=ast.Attribute(value=owner, attr="format")):
                text = self.value(owner)
                return _opened(text) if isinstance(text, str) else HOLE
            case _:
                return HOLE

    def _joined(self, glue: str, parts: list[Value]) -> str:
        texts = [part if isinstance(part, str) else HOLE for part in parts]
        self._spend(sum(map(len, texts)) + len(glue) * len(texts))
        return glue.join(texts)

    def _charge(self, value: Value) -> None:
        self._spend(1 + (len(value) if isinstance(value, str) else 0))
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for child in children:
            self._charge(child)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ImportRefused(f"{self._where}: expected texts; found names that make more than {MOST_BYTES} bytes")


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement itself assigns."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case _:
            pass
    for part in _expressions(statement):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def _opened(text: str) -> str:
    """Return a format string with holes for its fields."""
    try:
        pieces = [(literal, field) for literal, field, _, _ in string.Formatter().parse(text)]
    except ValueError:
        return HOLE
    return "".join(literal + (HOLE if field is not None else "") for literal, field in pieces)


def _in_order(tree: ast.Module) -> list[ast.stmt]:
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return sorted(statements, key=lambda statement: (statement.lineno, statement.col_offset))


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of a statement itself, without those of the statements in its body."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            continue
        if isinstance(child, ast.expr):
            yield child
        yield from _expressions(child)
