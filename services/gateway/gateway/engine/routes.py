"""Passes models, embeddings and completions through to the engine, without memory."""

from fastapi import APIRouter, Request, Response

from gateway.access import AllowanceDep, PrincipalDep, Room, needs
from gateway.engine.backend import Backend, BackendDep
from gateway.engine.errors import soon
from gateway.engine.passthrough import pass_through
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError, NotFound
from memloop_service import ERRORS
from memloop_service.direct_route import DirectRoute
from memloop_service.http import engines_body, objects_in, streams

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
    return await pass_through(request, backend, allowance, "embeddings")


@router.post(
    "/v1/completions",
    response_model=None,
    dependencies=[_CHAT, Room],
    responses=streams(),
    openapi_extra=engines_body(),
)
async def create_completion(request: Request, backend: BackendDep, allowance: AllowanceDep) -> Response:
    """Create a completion."""
    return await pass_through(request, backend, allowance, "completions")


router.include_router(listings)


async def _models(backend: Backend) -> Json:
    try:
        return await backend.models.listing()
    except EngineError as error:
        raise soon(error) from error
