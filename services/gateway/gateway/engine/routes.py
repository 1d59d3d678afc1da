"""Passes models, embeddings and completions through to the engine, without memory; lists and changes rollouts."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Query, Request, Response

from gateway.access import AllowanceDep, Principal, PrincipalDep, Room, audit_action, needs
from gateway.engine.backend import BackendDep
from gateway.engine.rollouts import Rollouts
from gateway.engine.streams import pass_through
from memloop.wire.chat import Json
from memloop.wire.errors import MODEL_NOT_FOUND, NotFound
from memloop.wire.rollouts import Rollout, RolloutChange, RolloutEnded, RolloutPage
from memloop_service import ERRORS, of_app
from memloop_service.http import body_of, engines_body, objects_in, read_ours, streams

listings = APIRouter(tags=["engine"])
router = APIRouter(tags=["engine"], responses=ERRORS)
rollouts = APIRouter(prefix="/v1/admin/rollouts", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)
_CHAT = needs("chat", ignores_unknown=True)


async def _operator(principal: PrincipalDep) -> Principal:
    """Return the caller: with configured keys only an operator, because models serve all tenants."""
    principal.require_operator("Only operator keys may see and change rollouts.")
    return principal


OperatorDep: TypeAlias = Annotated[Principal, Depends(_operator)]
RolloutsDep: TypeAlias = Annotated[Rollouts, of_app("rollouts")]


@listings.get("/v1/models", dependencies=[needs(None, ignores_unknown=True)])
async def list_models(backend: BackendDep) -> Json:
    """List the models that requests may name."""
    return await backend.models.listing()


@listings.get("/v1/models/{model_id:path}", dependencies=[needs(None, ignores_unknown=True)])
async def retrieve_model(model_id: str, backend: BackendDep) -> Json:
    """Return one of the models that requests may name."""
    for model in objects_in((await backend.models.listing()).get("data")):
        if model.get("id") == model_id:
            return model
    raise NotFound(f"There is no model {model_id!r}.", param="model", code=MODEL_NOT_FOUND)


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


@rollouts.get("", dependencies=[Depends(_operator)])
async def list_rollouts(kept: RolloutsDep) -> RolloutPage:
    """List the models of which a share of the requests goes to a candidate, and the calls of both."""
    return RolloutPage(data=await kept.all())


@rollouts.put("", dependencies=[Room], openapi_extra=body_of(RolloutChange))
async def change_rollout(request: Request, kept: RolloutsDep, operator: OperatorDep) -> Rollout:
    """Send a share of a model's requests to a candidate; both are models of the models file.

    A user's requests and a read's chunks stay with one of the two. All processes follow within two seconds.
    """
    change = await read_ours(request, RolloutChange)
    await audit_action("rollout.changed", request, operator, tenant=operator.tenant, target=change.model)
    return await kept.change(change)


@rollouts.delete("", dependencies=[Room])
async def end_rollout(
    request: Request,
    kept: RolloutsDep,
    operator: OperatorDep,
    model: Annotated[str, Query(min_length=1, max_length=128)],
) -> RolloutEnded:
    """End a model's rollout: its requests go to itself again."""
    await audit_action("rollout.ended", request, operator, tenant=operator.tenant, target=model)
    return RolloutEnded(model=model, deleted=await kept.end(model))


router.include_router(listings)
router.include_router(rollouts)
