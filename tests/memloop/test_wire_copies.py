import pytest

from memloop.wire.memory import Namespace

ALICE = Namespace(tenant="t", user_id="alice")


def test_a_copy_changes_the_given_field() -> None:
    assert ALICE.model_copy(update={"agent_id": "a"}) == Namespace(tenant="t", user_id="alice", agent_id="a")


def test_a_copy_refuses_a_field_that_the_model_does_not_have() -> None:
    with pytest.raises(AttributeError, match="Namespace has no field agent"):
        ALICE.model_copy(update={"agent": "a"})
