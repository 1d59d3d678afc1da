"""``memloop keys``: its commands and their options."""

from typing import Annotated

import typer

from memloop.clients import GatewayClient
from memloop_cli.commands import keys
from memloop_cli.options import HOME, HomeFolder, Key, Url, console, with_gateway

Tenant = Annotated[str | None, typer.Option("--tenant", help="The tenant; default: the admin key's own.")]
app = typer.Typer(no_args_is_help=True, help="The gateway's API keys; needs a key with the scope admin.")


@app.command("create")
def keys_create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    tenant: Tenant = None,
    scopes: Annotated[str | None, typer.Option(help="Joined with +; default: all but admin.")] = None,
    expires: Annotated[str | None, typer.Option(help="A date or a time; default: never.")] = None,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Create a key and print its secret once."""

    async def work(client: GatewayClient) -> None:
        request = keys.asked(name, tenant=tenant, scopes=scopes, expires=expires)
        await keys.create(client, console, request)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("list")
def keys_list(tenant: Tenant = None, home: HomeFolder = HOME, url: Url = None, api_key: Key = None) -> None:
    """List a tenant's keys."""

    async def work(client: GatewayClient) -> None:
        await keys.list_all(client, console, tenant=tenant)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("rotate")
def keys_rotate(
    key_id: str,
    overlap: Annotated[str, typer.Option(help="How long the old secret stays valid: 30m, 24h, 7d.")] = "0",
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Give a key a new secret and print it once."""

    async def work(client: GatewayClient) -> None:
        await keys.rotate(client, console, key_id, overlap_s=keys.seconds_of(overlap))

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("revoke")
def keys_revoke(key_id: str, home: HomeFolder = HOME, url: Url = None, api_key: Key = None) -> None:
    """Revoke a key; takes effect within a second."""

    async def work(client: GatewayClient) -> None:
        await keys.revoke(client, console, key_id)

    with_gateway(work, home=home, url=url, api_key=api_key)
