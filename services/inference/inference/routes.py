"""The launcher's routes: the model, its prompt profile, its tokenizer."""

from fastapi import APIRouter, Depends, Request, Response

from inference.checkpoint import read_tokenizer
from inference.lifecycle import Lifecycle
from memloop.wire.errors import Unavailable
from memloop_clients.inference import ServedModel, ServedProfile
from memloop_service import ERRORS
from memloop_service.incoming import refuse_unknown


class LaunchedModel(ServedModel):
    """``GET /v1/model``: the served model, with its engine and profile, and whether it is ready."""

    engine: str
    profile: str
    ready: bool


def model_routes(lifecycle: Lifecycle) -> APIRouter:
    """Build the three routes. They need no key because they hold no user data."""
    router = APIRouter(tags=["model"], dependencies=[Depends(refuse_unknown)], responses=ERRORS)
    plan = lifecycle.plan

    @router.get("/v1/profile")
    async def profile() -> ServedProfile:
        return ServedProfile(ref=lifecycle.profile.ref, files=lifecycle.profile_files)

    @router.get("/v1/tokenizer", response_model=None)
    async def tokenizer() -> Response:
        found = await read_tokenizer(plan.model, local=plan.local, revision=plan.revision)
        return Response(found, media_type="application/json")

    @router.get("/v1/model")
    async def model(request: Request) -> LaunchedModel:
        if lifecycle.window_tokens is None:
            raise Unavailable("the engine has not started yet", retry_after_s=1)
        return LaunchedModel(
            id=plan.served_name,
            engine=plan.engine,
            engine_url=f"{lifecycle.url_for(request.url.hostname)}/v1",
            max_model_len=lifecycle.window_tokens,
            profile=lifecycle.profile.ref,
            ready=lifecycle.phase == "ready",
            checkpoint=lifecycle.checkpoint,
            template=lifecycle.template,
        )

    _ = profile, tokenizer, model
    return router
