"""The console from a gateway process whose whole file system is read-only, as in its image."""

import subprocess
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import expect

from tests.console.browser import browsing
from tests.console.stack import BUILT, console_stack
from tests.fakes.service_process import started

_READ_ONLY: Final = (
    "mount -o remount,ro,bind / && mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp && "
    '! touch "$0/written" 2>&- && ! touch /tmp/written 2>&- && exec "$@"'
)
_UNSHARE: Final = ("unshare", "--mount", "--propagation", "private")
CAN_MOUNT: Final = subprocess.run([*_UNSHARE, "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not CAN_MOUNT, reason="only root may make a file system read-only")
async def test_a_gateway_on_a_read_only_root_serves_every_page(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        settings = stack.settings
        environment = {
            "MEMLOOP_ENGINE_URL": str(settings.engine_url),
            "MEMLOOP_STORE_URL": str(settings.store_url),
            "MEMLOOP_REDIS_URL": redis_url,
            "MEMLOOP_MODEL": "m",
            "MEMLOOP_HOST": "127.0.0.1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        within = (*_UNSHARE, "sh", "-c", _READ_ONLY, str(BUILT))
        async with (
            started("gateway.main", tmp_path, environment, within=within) as gateway,
            browsing(gateway.url) as page,
        ):
            await page.goto(gateway.url + "/console/memories?user=ann")
            await expect(page.get_by_text("Ann lives in Leeds.")).to_be_visible()
            for name in ("Decisions", "Read", "Chat", "Operate"):
                await page.get_by_role("link", name=name, exact=True).click()
                await expect(page.get_by_role("heading", level=1)).to_be_visible()
            await page.goto(gateway.url + "/docs")
            await expect(page.get_by_text("/v1/memory/search")).to_be_visible()
