"""Renders an OpenAPI document as one Markdown page: a section per tag, a table per body and schema.

Standard library only.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_HEAD: Final = """# Every route

From the OpenAPI document of version {version}. [HTTP API](../api.md) has the rules for all routes."""
Schema = Mapping[str, Any]
METHODS: Final = ("get", "post", "put", "patch", "delete")
LIMITS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
}
"""What a bound of a schema is called in a table."""


def routes_page(document: Schema) -> str:
    """The page of all routes and schemas of that document."""
    parts = [_HEAD.format(version=document["info"]["version"])]
    by_tag: dict[str, list[str]] = {}
    for path, method, route in _routes(document):
        by_tag.setdefault((route.get("tags") or ["other"])[0], []).append(_route(method, path, route))
    for tag, sections in by_tag.items():
        parts += [f"## {tag}", *sections]
    schemas = document.get("components", {}).get("schemas", {})
    parts += ["## Schemas", *(_schema(name, schema) for name, schema in sorted(schemas.items()))]
    return "\n\n".join(parts) + "\n"


def _routes(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, routes in document["paths"].items():
        for method in METHODS:
            if method in routes:
                yield path, method, routes[method]


def _route(method: str, path: str, route: Schema) -> str:
    lines = [f"### `{method.upper()} {path}`"]
    if route.get("deprecated"):
        lines.append("**Deprecated.**")
    lines += [route.get("description") or f"{route['summary']}.", _scopes(route), *_parameters(route)]
    for kind, content in route.get("requestBody", {}).get("content", {}).items():
        lines += [f"Body, `{kind}`: {_type(content.get('schema', {}))}", _fields(content.get("schema", {}))]
        lines += list(_examples(content))
    lines.append(_responses(route))
    return "\n\n".join(line for line in lines if line)


def _scopes(route: Schema) -> str:
    scopes = sorted({scope for entry in route.get("security", ()) for names in entry.values() for scope in names})
    named = f"Scope: {', '.join(f'`{scope}`' for scope in scopes)}. " if scopes else ""
    return f"{named}Operation: `{route['operationId']}`."


def _parameters(route: Schema) -> Iterator[str]:
    rows = [
        (
            f"`{one['name']}`",
            one["in"],
            _type(one["schema"]),
            "yes" if one.get("required") else "",
            _meaning(one["schema"], one),
        )
        for one in route.get("parameters", ())
    ]
    if rows:
        yield _table(("Parameter", "In", "Type", "Required", "Meaning"), rows)


def _responses(route: Schema) -> str:
    rows = [
        (
            f"`{status}`",
            ", ".join(f"`{kind}`: {_type(one.get('schema', {}))}" for kind, one in answer.get("content", {}).items()),
            answer.get("description", ""),
        )
        for status, answer in route["responses"].items()
    ]
    return _table(("Status", "Body", "Meaning"), rows)


def _schema(name: str, schema: Schema) -> str:
    about = "" if schema.get("properties") else _type(schema)
    return "\n\n".join(
        part for part in (f"### {name}", _prose(schema.get("description", "")), about, _fields(schema)) if part
    )


def _fields(schema: Schema) -> str:
    required = schema.get("required", ())
    rows = [
        (f"`{name}`", _type(field), "yes" if name in required else "", _meaning(field))
        for name, field in schema.get("properties", {}).items()
    ]
    return _table(("Field", "Type", "Required", "Meaning"), rows) if rows else ""


def _meaning(schema: Schema, described: Schema | None = None) -> str:
    variants = [schema, *schema.get("anyOf", ())]
    limits = [text.format(_number(one[name])) for one in variants for name, text in LIMITS.items() if name in one]
    default = [f"default `{json.dumps(schema['default'])}`"] if schema.get("default") is not None else []
    prose = _prose((described or {}).get("description") or schema.get("description", ""))
    return ". ".join(part for part in (prose.rstrip("."), "; ".join([*default, *limits])) if part)


def _number(value: float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    if variants := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(dict.fromkeys(_type(one) for one in variants if one.get("type") != "null"))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def _examples(content: Schema) -> Iterator[str]:
    for example in content.get("examples", {}).values():
        yield f"```json\n{json.dumps(example['value'], indent=2, ensure_ascii=False)}\n```"


def _prose(text: str) -> str:
    """A docstring's text as Markdown of one line."""
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("<", "&lt;")
