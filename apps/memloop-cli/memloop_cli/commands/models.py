"""Which model a command uses when the user names none."""

from memloop_cli.errors import CliError
from memloop_clients.gateway import GatewayClient


async def first_model(client: GatewayClient) -> str:
    """The id of the first served model. Raises CliError when the gateway lists none."""
    models = await client.models()
    if not models:
        raise CliError("the gateway lists no model")
    return models[0]
