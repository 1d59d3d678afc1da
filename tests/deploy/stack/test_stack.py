"""The stack of ``docker-compose.yml`` on real containers: it starts, is guarded, and passes the README's smoke test.

Grafana is not among them: its image cannot be pulled everywhere, and no package registry carries it.
"""

import pytest

from tests.deploy.stack.compose import ComposeStack, smoke

pytestmark = pytest.mark.containers


def test_the_readmes_smoke_test_passes(stack: ComposeStack) -> None:
    done = smoke(stack)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
