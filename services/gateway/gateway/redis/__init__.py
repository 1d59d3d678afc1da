"""Key names, memory and room of Redis."""

from gateway.redis.connection import RedisState, redis_of, redis_state
from gateway.redis.key_names import (
    FILES_EXPIRING,
    WRITES_REFUSED,
    Keys,
    Partition,
    audit,
    conversation_id,
    event_id,
    mcp_call,
    policies_of,
    rate_window,
    response_id,
    trace_body,
    trace_switch,
    traces_of,
    traces_of_user,
)
from gateway.redis.room import RedisRoom

__all__ = [
    "FILES_EXPIRING",
    "WRITES_REFUSED",
    "Keys",
    "Partition",
    "RedisRoom",
    "RedisState",
    "audit",
    "conversation_id",
    "event_id",
    "mcp_call",
    "policies_of",
    "rate_window",
    "redis_of",
    "redis_state",
    "response_id",
    "trace_body",
    "trace_switch",
    "traces_of",
    "traces_of_user",
]
