"""The profile ``external`` with an engine that runs on this machine, beside the containers."""

import pytest

from tests.deploy.stack.compose import ComposeStack, smoke

pytestmark = pytest.mark.containers


def test_the_smoke_test_passes_with_an_engine_outside_of_containers(external_stack: ComposeStack) -> None:
    done = smoke(external_stack)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_engine_of_ours_is_started(external_stack: ComposeStack) -> None:
    running = set(external_stack.compose("ps", "--services").split())
    assert running == {"gateway", "worker", "memory-store", "redis", "qdrant", "prometheus"}
