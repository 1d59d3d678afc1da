"""Names the Redis keys of API keys, their audit log and rate limits.

API keys share a tag with the log of their changes and the audit stream ``admin``, because one script writes all three.
"""

from typing import Final

API_KEYS: Final = "memloop:{api-keys}"
API_KEYS_USED: Final = "memloop:{api-keys}:used"
API_KEYS_LOG: Final = "memloop:{api-keys}:log"


def api_keys_of(tenant: str) -> str:
    """Name the sorted set of a tenant's keys."""
    return f"memloop:{{api-keys}}:of:{tenant}"


def audit(kind: str, tenant: str) -> str:
    """Name a stream of the audit log. A tenant's name contains no colon; entries without a tenant have their own."""
    return f"memloop:{{api-keys}}:audit:{kind}:{tenant}" if kind == "admin" else f"memloop:audit:{kind}:{tenant}"


def rate_window(bucket: str) -> str:
    """Name the hash of a key's usage in the last minute."""
    return f"memloop:rate:{bucket}"
