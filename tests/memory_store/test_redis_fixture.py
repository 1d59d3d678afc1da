from pathlib import Path

from tests.fakes.redis_server import RedisServer


def test_redis_is_real_and_empty_at_the_start_of_a_test(redis_url: str, redis_server: RedisServer) -> None:
    assert redis_url == redis_server.url
    assert redis_server.command("DBSIZE") == b":0\r\n"
    assert redis_server.command("SET left over") == b"+OK\r\n"


def test_what_one_test_left_in_redis_is_gone_in_the_next(redis_url: str, redis_server: RedisServer) -> None:
    assert redis_url == redis_server.url
    assert redis_server.command("EXISTS left") == b":0\r\n"


def test_a_killed_redis_comes_back_on_its_port_with_what_was_appended(tmp_path: Path) -> None:
    first = RedisServer.start(folder=tmp_path, appendonly=True)
    first.command("SET kept yes")
    first.kill()

    second = RedisServer.start(port=first.port, folder=tmp_path, appendonly=True)

    assert second.command("GET kept") == b"$3\r\nyes\r\n"
    second.stop()
