"""The launcher's routes: the model, its prompt profile, its tokenizer."""

from collections.abc import Mapping

from fastapi import APIRouter, Depends, Request, Response

from inference.checkpoint import read_tokenizer
from inference.lifecycle import Lifecycle
from memloop.templates import ChatTemplate
from memloop.wire.base import Wire
from memloop.wire.checkpoint import CheckpointRecord
from memloop.wire.errors import Unavailable
from memloop_service import ERRORS
from memloop_service.incoming import refuse_unknown


class ServedProfile(Wire):
    """``GET /v1/profile``: the profile's reference and its files by name."""

    ref: str
    files: Mapping[str, str]


class ServedModel(Wire):
    """``GET /v1/model``: ``engine_url`` is the OpenAI base URL, ``max_model_len`` counts tokens.

    ``checkpoint`` is the export record of a trained checkpoint, None without one. ``template`` says which roles the
    model's chat template takes; None where it could not be rendered.
    """

    id: str
    engine: str
    engine_url: str
    max_model_len: int
    profile: str
    ready: bool
    checkpoint: CheckpointRecord | None = None
    template: ChatTemplate | None = None


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
    async def model(request: Request) -> ServedModel:
        if lifecycle.window_tokens is None:
            raise Unavailable("the engine has not started yet", retry_after_s=1)
        return ServedModel(
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
