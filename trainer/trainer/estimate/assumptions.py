"""The assumptions of an estimate. A recipe's ``estimate`` section and ``estimate.KEY=VALUE`` change them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from trainer.estimate.hardware import GpuName


class Assumptions(BaseModel):
    """Shares are of the maker's figure, or of a limit: above 0, at most 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu: GpuName = "h100"
    model: str | None = Field(default=None, description="published model of the same shape, for an unpublished one")
    rows: int = Field(default=8192, gt=0, description="prompts of the data set")
    document_tokens: int = Field(default=32768, gt=0, description="of a document that is read")
    conversation_tokens: int = Field(default=3000, gt=0, description="of a memory writer's prompt")
    question_tokens: int = Field(default=64, gt=0)
    template_tokens: int = Field(default=192, gt=0, description="of a prompt's own words")
    reply_share: float = Field(default=0.5, gt=0, le=1, description="mean length of a reply, of its limit")
    rereads: float = Field(default=1.0, ge=0, description="mean per rollout (MemReread)")
    searches: float = Field(default=1.0, ge=0, description="mean per rollout (MemReader)")
    train_mfu: float = Field(default=0.35, gt=0, le=1, description="of the peak, in forward and backward passes")
    prefill_mfu: float = Field(default=0.4, gt=0, le=1, description="of the peak, when the engine reads prompts")
    bandwidth_share: float = Field(default=0.6, gt=0, le=1, description="of the memory's, when the engine writes")
    straggling: float = Field(default=0.7, gt=0, le=1, description="of the time in which an engine's batch is full")
    step_overhead_s: float = Field(default=60.0, ge=0, description="weights to the engines, waiting, data, checkpoints")
    logit_bytes: float = Field(
        default=14.0, ge=0, description="per logit that is kept: bfloat16, the entropy's float32 shares and products"
    )
    padding: float = Field(default=2.0, ge=1, description="tokens of padded rows per real one, at most")
    runtime_gib: float = Field(default=4.0, ge=0, description="per GPU: contexts, NCCL, graphs, fragmentation")
    sync_gib: float = Field(default=2.0, ge=0, description="per GPU: the bucket in which weights go to the engine")
