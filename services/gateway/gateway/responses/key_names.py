"""Names the Redis keys of responses and conversations. A tenant's share a tag with the count of their bytes."""

from dataclasses import dataclass

from redis.asyncio import Redis

from memloop_state.partitions import Partition, Partitions, id_at


@dataclass(frozen=True, slots=True)
class ResponsePartition(Partition):
    """The keys under one tag."""

    def response(self, tenant: str, response_id: str) -> str:
        """Name the hash of a stored response."""
        return self.key("response", tenant, response_id)

    def responses_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's responses, by the time at which they expire."""
        return self.key("responses", tenant)

    def response_sizes(self, tenant: str) -> str:
        """Name the hash of the bytes of a tenant's responses, with their sum."""
        return self.key("response-sizes", tenant)

    def conversation(self, tenant: str, conversation_id: str) -> str:
        """Name the hash of a conversation: metadata, owners, the number of items so far."""
        return self.key("conversation", tenant, conversation_id)

    def conversation_order(self, tenant: str, conversation_id: str) -> str:
        """Name the sorted set of a conversation's items, by their number."""
        return self.key("conversation-order", tenant, conversation_id)

    def conversation_items(self, tenant: str, conversation_id: str) -> str:
        """Name the hash of a conversation's items."""
        return self.key("conversation-items", tenant, conversation_id)

    def conversations_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's conversations, by the time at which they expire."""
        return self.key("conversations", tenant)

    def conversation_sizes(self, tenant: str) -> str:
        """Name the hash of the bytes of a tenant's conversations, with their sum."""
        return self.key("conversation-sizes", tenant)


class Keys(Partitions[ResponsePartition]):
    """The partitions of one Redis."""

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, ResponsePartition)


def placed_response_id(tenant: str, digits: str) -> str:
    """Make the id of a tenant's response from 32 hex digits, of which 30 are kept."""
    return id_at("resp_", tenant, digits)
