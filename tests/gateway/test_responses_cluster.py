"""Stored responses on a real Redis Cluster: each tenant's lie in one slot, tenants in many."""

import pytest
from redis.asyncio import Redis

from gateway.responses.conversations.records import ConversationRecords
from gateway.responses.records import ResponseRecords, StoredResponse, new_response_id
from gateway.settings import GatewaySettings
from memloop.wire.errors import NotFound
from memloop.wire.memory import Namespace
from memloop_state.owners import Owners
from tests.gateway.redis_view import keys


async def test_responses_of_many_tenants_are_kept_continued_and_erased(cluster_redis: Redis) -> None:
    records = ResponseRecords(cluster_redis, GatewaySettings())
    owners = [Namespace(tenant=f"t{number}", user_id="ada") for number in range(24)]
    last: dict[str, str] = {}
    for owner in owners:
        for _ in range(3):
            response_id = new_response_id(owner.tenant)
            await records.begin(owner.tenant, response_id, size=100)
            stored = StoredResponse({"id": response_id, "output": []}, (), last.get(owner.tenant, ""))
            assert await records.keep(stored, owner, 0) == "kept"
            last[owner.tenant] = response_id
    tags = {key.split("}")[0].split("{")[1] for key in await keys(cluster_redis, "*:response:*")}
    assert len(tags) > 3
    for owner in owners:
        chain = await records.chain(owner.tenant, last[owner.tenant], max_bytes=10**6)
        assert len(chain) == 3
        await records.delete(owner.tenant, last[owner.tenant])
        owned = await Owners(cluster_redis).records(owner)
        assert [kind for kind, _ in owned] == ["responses"] * 2
        for _, response_id in owned:
            await records.delete(owner.tenant, response_id)
        with pytest.raises(NotFound):
            await records.get(owner.tenant, chain[0].id)
    assert await keys(cluster_redis, "*:response:*") == []
    assert await keys(cluster_redis, "*:response-sizes:*") == []


async def test_conversations_of_many_tenants_are_kept_and_erased(cluster_redis: Redis) -> None:
    records = ConversationRecords(cluster_redis, GatewaySettings())
    owners = [Namespace(tenant=f"t{number}", user_id="ada") for number in range(24)]
    made: dict[str, str] = {}
    for owner in owners:
        made[owner.tenant] = (await records.create(owner, {}, [{"id": "msg_1"}])).id
        await records.begin(owner.tenant, made[owner.tenant], new=1, size=10)
        assert await records.append(made[owner.tenant], owner, 0, [{"id": "msg_2"}]) == "kept"
        items, _ = await records.items(owner.tenant, made[owner.tenant], limit=9)
        assert items == [{"id": "msg_1"}, {"id": "msg_2"}]
    tags = {key.split("}")[0].split("{")[1] for key in await keys(cluster_redis, "*:conversation:*")}
    assert len(tags) > 3
    for owner in owners:
        assert await Owners(cluster_redis).records(owner) == [("conversations", made[owner.tenant])]
        await records.delete(owner.tenant, made[owner.tenant])
    assert await keys(cluster_redis, "*conversation*") == []
