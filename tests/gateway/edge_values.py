"""Values at the edge of each type, by JSON schema: mostly what a schema allows, then its bounds, then anything else."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

Schema: TypeAlias = Mapping[str, Any]
TEXTS: Final = (
    "",
    " ",
    "\0",
    "\ud800",
    "\udfff\ud83d",
    "\U0001f600" * 20,
    "\u202eabc\ufeff",
    "e\u0301\u0327" * 10,
    "'\"`;--<script>",
    "../../etc/passwd",
    "%00%ff",
    "{user_id}",
    "*",
    "may may may",
    "!" * 200,
    "null",
    "1e400",
    "a" * 257,
)
MOMENTS: Final = (
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "0999-12-31T23:59:59Z",
    "1000-01-01T00:00:00Z",
    "8999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-23:59",
    "2026-02-30T00:00:00Z",
    "2026-06-30T23:59:60Z",
    "2026-01-01T00:00:00+99:99",
    "2026-01-01",
    "-1",
)
NUMBERS: Final = (0, -1, 1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30)
FRACTIONS: Final = (0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, float("inf"), float("nan"), 1.0000000001)
_WORDS: Final = ("tea", "Ann drinks tea.", "u1", "Where?", "one two three four")
_CHARS: Final = ("x", "\u00e9", "\U0001f600", " ", '"')
_WILDNESS: Final = (0.0, 0.02, 0.1, 0.4)
_LONGEST: Final = 40_000
_MOST_ITEMS: Final = 600
_DEEPEST: Final = 6


class Edges:
    """Makes values from a seed. ``known`` are values that exist, by the name of their field or parameter."""

    def __init__(self, seed: int, components: Mapping[str, Schema], known: Mapping[str, Sequence[str]]) -> None:
        self.random = random.Random(seed)
        self.known = known
        self._components = dict(components)
        self._wildness = 0.0

    def define(self, schemas: Mapping[str, Schema]) -> None:
        """Know more schemas by their names."""
        self._components |= schemas

    def next_request(self) -> None:
        """Decide how wild the values of the next request are."""
        self._wildness = self.random.choice(_WILDNESS)

    def chance(self, share: float) -> bool:
        """Whether something of that probability happens."""
        return self.random.random() < share

    def named(self, name: str, schema: Schema, depth: int = 0) -> object:
        """A value of a field or parameter: often one that exists."""
        if name in self.known and self.chance(0.8):
            return self.random.choice(self.known[name])
        return self.value(schema, depth)

    def value(self, schema: Schema, depth: int = 0) -> object:
        """A value for a schema, or one that is none."""
        if not schema or self.chance(self._wildness):
            return self.anything(depth)
        if "$ref" in schema:
            return self.value(self._components[str(schema["$ref"]).rpartition("/")[2]], depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if "type" not in schema and (choices := schema.get("anyOf") or schema.get("oneOf")):
            return self.value(self.random.choice(choices), depth)
        return self._typed(schema, depth)

    def anything(self, depth: int = 0) -> object:
        """A value of any type."""
        kind = self.random.randrange(8 if depth < _DEEPEST else 6)
        match kind:
            case 0 | 1:
                return self.random.choice(TEXTS)
            case 2:
                return self.random.choice(NUMBERS)
            case 3:
                return self.random.choice(FRACTIONS)
            case 4:
                return self.random.choice(MOMENTS)
            case 5:
                return self.random.choice((None, True, False))
            case 6:
                return [self.anything(depth + 1) for _ in range(self.random.randrange(4))]
            case _:
                return {self._key(): self.anything(depth + 1) for _ in range(self.random.randrange(4))}

    def text(self, schema: Schema) -> str:
        """A text: a word, one at a bound of its length, or an odd one."""
        if schema.get("format") == "date-time":
            return self.random.choice(MOMENTS)
        if self.chance(0.6):
            return self.random.choice(_WORDS)
        lengths = [schema["minLength"]] if "minLength" in schema else []
        lengths += [schema["maxLength"]] if schema.get("maxLength", _LONGEST) < _LONGEST else []
        if not lengths or self.chance(0.5):
            return self.random.choice(TEXTS)
        return self.random.choice(_CHARS) * max(0, self.random.choice(lengths) + self.random.choice((-1, 0, 1)))

    def _typed(self, schema: Schema, depth: int) -> object:
        kind: object = schema.get("type")
        if isinstance(kind, list):
            kind = self.random.choice(cast(list[object], kind))
        match kind:
            case "string":
                return self.text(schema)
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "boolean":
                return self.chance(0.5)
            case "null":
                return None
            case "array":
                return self._array(schema, depth)
            case "object":
                return self._object(schema, depth)
            case _:
                return self.anything(depth)

    def _number(self, schema: Schema, *, whole: bool) -> float:
        names = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "default")
        bounds = [schema[name] for name in names if isinstance(schema.get(name), int | float)]
        if bounds and self.chance(0.8):
            return self.random.choice(bounds) + self.random.choice((-1, 0, 0, 1))
        return self.random.choice(NUMBERS if whole else FRACTIONS)

    def _array(self, schema: Schema, depth: int) -> list[object]:
        if depth > _DEEPEST:
            return []
        most = schema.get("maxItems", 2)
        sizes = [0, 1, 1, 1, 2, min(schema.get("minItems", 1), _MOST_ITEMS)]
        sizes += [most, most + 1] if most < _MOST_ITEMS and self.chance(0.05) else []
        return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.random.choice(sizes))]

    def _object(self, schema: Schema, depth: int) -> dict[str, object]:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        chosen = [name for name in properties if self.chance(0.98 if name in required else 0.25)]
        found = {name: self.named(name, properties[name], depth + 1) for name in chosen}
        if not properties or self.chance(self._wildness):
            found[self._key()] = self.anything(depth + 1)
        return found

    def _key(self) -> str:
        return self.random.choice((*_WORDS, *TEXTS, "AND", "OR", "NOT", "gte", "in", "*", "metadata", "user_id"))
