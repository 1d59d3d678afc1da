"""Passes models, embeddings, completions and responses through to the engine, without memory."""

from collections.abc import Collection
from typing import Final

from fastapi import APIRouter, Request, Response

from gateway.access import Allowance, AllowanceDep, PrincipalDep, Room, needs
from gateway.engine.backend import Backend, BackendDep
from gateway.engine.errors import soon
from gateway.engine.meter import Meter
from gateway.engine.passthrough import EngineCall, relay
from gateway.http import Sink, engines_body, json_text, objects_in, parsed_object, read_json, streams
from memloop.clients import RawResponse
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError, NotFound, NotSupported
from memloop_service import ERRORS
from memloop_service.direct_route import DirectRoute

_ASKING = ("prompt", "input", "instructions")
MEMORY_HEADER: Final = "x-memloop-memory"
"""The response header of routes without memory; its value is ``none``."""

listings = APIRouter(tags=["engine"])
router = APIRouter(tags=["engine"], route_class=DirectRoute, responses=ERRORS)
_CHAT = needs("chat")


@listings.get("/v1/models", dependencies=[needs(None)])
async def list_models(backend: BackendDep, principal: PrincipalDep) -> Json:
    """List the models that requests may name."""
    del principal
    return await _models(backend)


@listings.get("/v1/models/{model_id:path}", dependencies=[needs(None)])
async def retrieve_model(model_id: str, backend: BackendDep, principal: PrincipalDep) -> Json:
    """Return one of the models that requests may name."""
    del principal
    for model in objects_in((await _models(backend)).get("data")):
        if model.get("id") == model_id:
            return model
    raise NotFound(f"There is no model {model_id!r}.", param="model", code="model_not_found")


@router.post(
    "/v1/embeddings", response_model=None, dependencies=[_CHAT, Room], responses=streams(), openapi_extra=engines_body()
)
async def create_embeddings(request: Request, backend: BackendDep, allowance: AllowanceDep) -> Response:
    """Create embeddings."""
    return await _pass_through(request, backend, allowance, "embeddings")


@router.post(
    "/v1/completions",
    response_model=None,
    dependencies=[_CHAT, Room],
    responses=streams(),
    openapi_extra=engines_body(),
)
async def create_completion(request: Request, backend: BackendDep, allowance: AllowanceDep) -> Response:
    """Create a completion."""
    return await _pass_through(request, backend, allowance, "completions")


@router.post(
    "/v1/responses", response_model=None, dependencies=[_CHAT, Room], responses=streams(), openapi_extra=engines_body()
)
async def create_response(request: Request, backend: BackendDep, allowance: AllowanceDep) -> Response:
    """Create a response. Stored responses are not supported: the engine's response store does not separate tenants."""
    return await _pass_through(
        request, backend, allowance, "responses", unserved=("previous_response_id", "conversation")
    )


router.include_router(listings)


async def _models(backend: Backend) -> Json:
    try:
        return await backend.models.listing()
    except EngineError as error:
        raise soon(error) from error


async def _pass_through(
    request: Request, backend: Backend, allowance: Allowance, operation: str, *, unserved: Collection[str] = ()
) -> Response:
    meter = Meter(backend.metrics, f"/v1/{operation}", operation, allowance)
    with meter.ours():
        body = await read_json(request)
        model = backend.models.asked(body.fields.get("model"))
        meter.goes_to(model)
    for field in unserved:
        if body.fields.get(field) is not None:
            raise NotSupported(f"{field} is not supported.", param=field)
    with meter.ours():
        await allowance.admit(*(body.fields.get(field) for field in _ASKING))

    async def stream(upstream: RawResponse, out: Sink) -> None:
        await relay(upstream, meter, out)

    async def whole(raw: bytes) -> bytes:
        meter.tokens(parsed_object(raw).get("usage"))
        return raw

    outgoing = body.raw if model.keeps_its_name else json_text({**body.fields, "model": model.engine_model})
    call = EngineCall(request, backend, model, meter)
    response = await call.answer(operation, outgoing, stream=stream, whole=whole)
    response.headers[MEMORY_HEADER] = "none"
    return response
