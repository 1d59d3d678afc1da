"""Pictures, sounds and films that a chat names by URL: an engine fetches them, so the gateway says from where.

SGLang opens ``file:///etc/passwd`` and plain paths on its own machine; vLLM does with one of its flags.
"""

import re
from typing import Final

from pydantic import JsonValue

from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest
from memloop_service.http import objects_in

_FETCHED: Final = re.compile(r"https?://|data:", re.IGNORECASE)


def refuse_local_media(fields: Json) -> None:
    """Raise InvalidRequest for a part of a message whose ``image_url`` or other ``…_url`` is neither web nor data."""
    for place, message in enumerate(objects_in(fields.get("messages"))):
        for number, part in enumerate(objects_in(message.get("content"))):
            for name, value in part.items():
                if name.endswith("_url") and not _is_fetched(value):
                    raise InvalidRequest(
                        "A URL in a message must begin with https://, http:// or data:.",
                        param=f"messages[{place}].content[{number}].{name}",
                        code="invalid_url",
                    )


def _is_fetched(value: JsonValue) -> bool:
    """Whether it is such a URL, alone or as ``{"url": …}``; what names no URL is the engine's to refuse."""
    url = value.get("url") if isinstance(value, dict) else value
    return not isinstance(url, str) or _FETCHED.match(url) is not None
