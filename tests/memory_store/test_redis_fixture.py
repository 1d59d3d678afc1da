import redis.asyncio as aioredis


async def test_redis_is_real_and_empty_at_the_start_of_a_test(redis_url: str) -> None:
    async with aioredis.Redis.from_url(redis_url) as client:
        assert await client.dbsize() == 0
        await client.set("left", "over")


async def test_what_one_test_left_in_redis_is_gone_in_the_next(redis_url: str) -> None:
    async with aioredis.Redis.from_url(redis_url) as client:
        assert await client.get("left") is None
