"""The engine's own routes, passed through: models, embeddings, completions, responses. No memory takes part."""

from collections.abc import Collection

from fastapi import APIRouter, Request, Response

from gateway.access.allowance import Allowance
from gateway.access.dependencies import AllowanceDep, PrincipalDep, Room, ServicesDep, needs
from gateway.chat.relay import relay
from gateway.document import engines_body, streams
from gateway.engine.answers import objects_in, parsed_object
from gateway.engine.errors import soon
from gateway.engine.meter import Meter
from gateway.engine.passthrough import EngineCall
from gateway.http.bodies import read_json
from gateway.http.event_stream import Outlet
from gateway.services import Services
from memloop.clients import RawResponse
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError, NotFound, NotSupported
from memloop_service.direct_route import DirectRoute

_ASKING = ("prompt", "input", "instructions")

listings = APIRouter(tags=["engine"])
router = APIRouter(tags=["engine"], route_class=DirectRoute)
_CHAT = needs("chat")


@listings.get("/v1/models", dependencies=[needs(None)])
async def list_models(services: ServicesDep, principal: PrincipalDep) -> Json:
    """The models that the engine serves."""
    del principal
    return await _models(services)


@listings.get("/v1/models/{model_id:path}", dependencies=[needs(None)])
async def retrieve_model(model_id: str, services: ServicesDep, principal: PrincipalDep) -> Json:
    """One of them."""
    del principal
    for model in objects_in((await _models(services)).get("data")):
        if model.get("id") == model_id:
            return model
    raise NotFound(f"The engine serves no model {model_id!r}.", param="model", code="model_not_found")


@router.post(
    "/v1/embeddings", response_model=None, dependencies=[_CHAT, Room], responses=streams(), openapi_extra=engines_body()
)
async def create_embeddings(request: Request, services: ServicesDep, allowance: AllowanceDep) -> Response:
    """Embeddings by the engine."""
    return await _pass_through(request, services, allowance, "embeddings")


@router.post(
    "/v1/completions",
    response_model=None,
    dependencies=[_CHAT, Room],
    responses=streams(),
    openapi_extra=engines_body(),
)
async def create_completion(request: Request, services: ServicesDep, allowance: AllowanceDep) -> Response:
    """A completion by the engine."""
    return await _pass_through(request, services, allowance, "completions")


@router.post(
    "/v1/responses", response_model=None, dependencies=[_CHAT, Room], responses=streams(), openapi_extra=engines_body()
)
async def create_response(request: Request, services: ServicesDep, allowance: AllowanceDep) -> Response:
    """A response by the engine, complete in itself: the engine's own store of responses knows no tenants."""
    return await _pass_through(
        request, services, allowance, "responses", unserved=("previous_response_id", "conversation")
    )


router.include_router(listings)


async def _models(services: Services) -> Json:
    try:
        return await services.engine.get_json("models")
    except EngineError as error:
        raise soon(error) from error


async def _pass_through(
    request: Request, services: Services, allowance: Allowance, operation: str, *, unserved: Collection[str] = ()
) -> Response:
    meter = Meter(services.metrics, f"/v1/{operation}", operation, allowance)
    with meter.ours():
        body = await read_json(request)
        meter.model = body.fields.get("model")
    for field in unserved:
        if body.fields.get(field) is not None:
            raise NotSupported(f"{field} is not served.", param=field)
    with meter.ours():
        await allowance.admit(*(body.fields.get(field) for field in _ASKING))

    async def stream(upstream: RawResponse, out: Outlet) -> None:
        await relay(services, upstream, meter, out)

    async def whole(raw: bytes) -> bytes:
        meter.tokens(parsed_object(raw).get("usage"))
        return raw

    return await EngineCall(request, services, meter).answer(operation, body.raw, stream=stream, whole=whole)
