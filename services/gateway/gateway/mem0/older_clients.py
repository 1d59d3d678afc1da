"""Query parameters that older clients of mem0 send with every request."""

from typing import Final

from fastapi import Request

from gateway.access import principal_of
from memloop.wire.errors import NotSupported

ORGANISATION: Final = "memloop"
"""The organisation of every key; a key's tenant is its project."""


async def of_older_clients(
    request: Request,
    org_id: str | None = None,
    project_id: str | None = None,
    version: str | None = None,
    api_version: str | None = None,
    output_format: str | None = None,
) -> None:
    """Accept what has no effect. Raises NotSupported for an organisation or a project other than the key's."""
    del version, api_version, output_format
    own = {"org_id": (org_id, ORGANISATION), "project_id": (project_id, (await principal_of(request)).tenant)}
    for name, (given, keys) in own.items():
        if given not in (None, keys):
            raise NotSupported(f"{name} is not supported: a key's tenant is its project.", param=name)
