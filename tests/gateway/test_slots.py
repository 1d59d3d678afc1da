"""Where keys lie in a cluster, and which URLs name one."""

from collections import Counter

import pytest
from redis.crc import key_slot

from gateway.memory import event_id
from memloop_state.connecting import connect
from memloop_state.link import TAGS, is_cluster
from memloop_state.steps import Partitions, id_at, id_beside

SLOTS = 16384
CLUSTER = "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
DIGITS = "0123456789abcdef" * 2


def slot(tag: str) -> int:
    return key_slot(f"memloop:{{{tag}}}:any".encode())


def keys(url: str = CLUSTER) -> Partitions:
    return Partitions(connect(url, connect_timeout_s=1, read_timeout_s=1))


def test_each_tag_lies_in_its_own_twelfth_of_the_slots() -> None:
    assert [slot(tag) * len(TAGS) // SLOTS for tag in TAGS] == list(range(len(TAGS)))


@pytest.mark.parametrize(("primaries", "most"), [(2, 6), (3, 4), (4, 3), (5, 3), (6, 2), (8, 2), (12, 1)])
def test_primaries_get_an_even_share_of_the_tags(primaries: int, most: int) -> None:
    assert max(Counter(slot(tag) * primaries // SLOTS for tag in TAGS).values()) == most


def test_an_id_names_the_partition_of_its_lane_tenant_or_read() -> None:
    here = keys()
    for number in range(100):
        name = f"t/user{number}"
        assert here.of_id(event_id(name, DIGITS)) == here.of_name(name)
        assert here.of_id(id_at("file-", name, DIGITS)) == here.of_name(name)
        read_id = f"lr_{number:02x}{DIGITS[2:]}"
        assert here.of_id(id_beside("msg_", read_id, DIGITS)) == here.of_id(read_id)


def test_users_spread_over_all_partitions() -> None:
    here = keys()
    found = Counter(here.of_name(f"t/user{number}").tag for number in range(1200))
    assert len(found) == len(TAGS)
    assert max(found.values()) < 2 * min(found.values())


def test_one_server_has_one_partition_and_an_unknown_id_lies_there() -> None:
    here = keys("redis://127.0.0.1:7000/0")
    assert len(here.partitions) == 1
    assert here.of_id("evt_{what}") == here.of_id("evt_7f") == here.partitions[0]


def test_a_cluster_is_named_by_its_scheme() -> None:
    assert is_cluster(connect("rediss+cluster://user:k%40y@one:7000,two", connect_timeout_s=1, read_timeout_s=1))
    assert not is_cluster(connect("redis://one:7000/0", connect_timeout_s=1, read_timeout_s=1))


@pytest.mark.parametrize(
    "url", ["redis+cluster://", "redis+cluster://one:7000,", "redis+cluster://one:7000/3", "http://one"]
)
def test_a_url_that_names_no_redis_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        connect(url, connect_timeout_s=1, read_timeout_s=1)
