"""``memloop keys``: its commands, with their options. A key's secret is printed once, alone on its line."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from pydantic import ValidationError
from rich.text import Text

from memloop.wire.keys import ALL_SCOPES, ApiKey, KeyCreate, NewApiKey
from memloop_cli.errors import BadInput
from memloop_cli.options import console, through_gateway
from memloop_clients import GatewayClient

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PAGE: Final = 100


Tenant = Annotated[str | None, typer.Option("--tenant", help="The tenant; default: the admin key's own.")]
app = typer.Typer(no_args_is_help=True, help="The gateway's API keys; needs a key with the scope admin.")


@app.command()
@through_gateway
async def create(
    client: GatewayClient,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    tenant: Tenant = None,
    scopes: Annotated[str | None, typer.Option(help="Joined with +; default: all but admin.")] = None,
    expires: Annotated[str | None, typer.Option(help="A date or a time; default: never.")] = None,
) -> None:
    """Create a key and print its secret once."""
    given = {
        "tenant": tenant,
        "scopes": None if scopes is None else _scopes(scopes),
        "expires_at": None if expires is None else _moment(expires),
    }
    named = {field: value for field, value in given.items() if value is not None}
    try:
        asked = KeyCreate.model_validate({"name": name, **named})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise BadInput(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    _show_new(await client.create_key(asked))


@app.command("list")
@through_gateway
async def list_all(client: GatewayClient, tenant: Tenant = None) -> None:
    """List a tenant's keys."""
    cursor: str | None = None
    found = 0
    while True:
        page = await client.keys(tenant, cursor=cursor, limit=_PAGE)
        for key in page.data:
            console.print(_line(key))
        found, cursor = found + len(page.data), page.next_cursor
        if cursor is None:
            break
    if not found:
        console.print("no keys", style="dim")


@app.command()
@through_gateway
async def rotate(
    client: GatewayClient,
    key_id: str,
    overlap: Annotated[str, typer.Option(help="How long the old secret stays valid: 30m, 24h, 7d.")] = "0",
) -> None:
    """Give a key a new secret and print it once."""
    _show_new(await client.rotate_key(key_id, overlap_s=seconds_of(overlap)))


@app.command()
@through_gateway
async def revoke(client: GatewayClient, key_id: str) -> None:
    """Revoke a key; takes effect within a second."""
    revoked = await client.revoke_key(key_id)
    console.print(f"{revoked.id} is revoked")


def seconds_of(text: str) -> int:
    """Parse ``90s``, ``30m``, ``24h``, ``7d`` or plain seconds. Raises BadInput."""
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if found is None:
        raise BadInput("--overlap takes seconds, or 30m, 24h, 7d")
    return int(found[1]) * _UNITS_S[found[2] or "s"]


def _scopes(text: str) -> tuple[str, ...]:
    named = frozenset(text.split("+"))
    if not named <= ALL_SCOPES:
        raise BadInput(f"--scopes takes {' + '.join(sorted(ALL_SCOPES))}, joined with +")
    return tuple(sorted(named))


def _moment(text: str) -> int:
    """Parse a date or time into seconds since the epoch; UTC unless it has an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput("--expires takes a date or a time: 2027-01-01, 2027-01-01T12:00:00Z") from None
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp())


def _show_new(key: NewApiKey) -> None:
    console.print(_line(key))
    if key.overlap_until is not None:
        console.print(f"the secret before it works until {_when(key.overlap_until)}", style="dim")
    console.print("the secret, shown this once:", style="dim")
    console.print(Text(key.secret))


def _line(key: ApiKey) -> Text:
    ends = f"until {_when(key.expires_at)}" if key.expires_at is not None else "does not expire"
    used = f"used {_when(key.last_used_at)}" if key.last_used_at is not None else "not used yet"
    return Text.assemble(
        (f"{key.id}  ", "bold"),
        f"{key.tenant}  {key.prefix}…  ",
        (key.name, "cyan"),
        (f"  [{'+'.join(key.scopes)}]  made {_when(key.created_at)}, {ends}, {used}", "dim"),
    )


def _when(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}"
