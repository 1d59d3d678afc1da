"""Where a copy of the whole collection stands, as every store shows it."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel

Kind = Literal["reembed", "flush"]
Status = Literal["running", "completed", "failed"]


class Progress(BaseModel):
    """``done`` counts points that the target has, of ``total`` when the copy began."""

    kind: Kind
    target: str
    status: Status = "running"
    done: int = 0
    total: int = 0
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    error: str | None = None
