"""The user whom ``metadata.user_id`` names.

Claude Code puts its device, account and session into this one field, so that the id differs in each session. Memory
belongs to the account or, without one, to the device. Other ids are taken as they are.
"""

import re
from typing import Final

import orjson

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CLAUDE_CODE: Final = re.compile(
    f"user_(?P<device_id>[0-9a-f]{{64}})_account_(?P<account_uuid>(?:{_UUID})?)_session_{_UUID}"
)
"""The form before version 2.1.78; later it is a JSON object as a string."""
_JSON_FIELDS: Final = frozenset({"device_id", "account_uuid", "session_id"})


def user_of(user_id: str) -> str:
    """Return the id of the user, the same in every session."""
    return _from_text(user_id) or _from_json(user_id) or user_id


def _from_text(user_id: str) -> str | None:
    found = _CLAUDE_CODE.fullmatch(user_id)
    return _named(found["account_uuid"], found["device_id"]) if found is not None else None


def _from_json(user_id: str) -> str | None:
    if not user_id.startswith("{"):
        return None
    try:
        fields = orjson.loads(user_id)
    except orjson.JSONDecodeError:
        return None
    if fields.keys() != _JSON_FIELDS or not all(isinstance(value, str) for value in fields.values()):
        return None
    return _named(fields["account_uuid"], fields["device_id"])


def _named(account: str, device: str) -> str | None:
    if account:
        return f"account_{account}"
    return f"device_{device}" if device else None
