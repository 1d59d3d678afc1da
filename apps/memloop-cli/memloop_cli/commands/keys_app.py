"""``memloop keys``: its commands and their options."""

from typing import Annotated

import typer

from memloop_cli.commands import keys
from memloop_cli.options import console, through_gateway
from memloop_clients import GatewayClient

Tenant = Annotated[str | None, typer.Option("--tenant", help="The tenant; default: the admin key's own.")]
app = typer.Typer(no_args_is_help=True, help="The gateway's API keys; needs a key with the scope admin.")


@app.command("create")
@through_gateway
async def keys_create(
    client: GatewayClient,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    tenant: Tenant = None,
    scopes: Annotated[str | None, typer.Option(help="Joined with +; default: all but admin.")] = None,
    expires: Annotated[str | None, typer.Option(help="A date or a time; default: never.")] = None,
) -> None:
    """Create a key and print its secret once."""
    request = keys.asked(name, tenant=tenant, scopes=scopes, expires=expires)
    await keys.create(client, console, request)


@app.command("list")
@through_gateway
async def keys_list(client: GatewayClient, tenant: Tenant = None) -> None:
    """List a tenant's keys."""
    await keys.list_all(client, console, tenant=tenant)


@app.command("rotate")
@through_gateway
async def keys_rotate(
    client: GatewayClient,
    key_id: str,
    overlap: Annotated[str, typer.Option(help="How long the old secret stays valid: 30m, 24h, 7d.")] = "0",
) -> None:
    """Give a key a new secret and print it once."""
    await keys.rotate(client, console, key_id, overlap_s=keys.seconds_of(overlap))


@app.command("revoke")
@through_gateway
async def keys_revoke(client: GatewayClient, key_id: str) -> None:
    """Revoke a key; takes effect within a second."""
    await keys.revoke(client, console, key_id)
