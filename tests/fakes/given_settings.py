"""Settings of given values alone: to look for a hundred variables in the environment takes longest in many a test."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic_settings import InitSettingsSource

from memloop_service import ServiceSettings

S = TypeVar("S", bound=ServiceSettings)


def given_settings(kind: type[S], values: Mapping[str, object]) -> S:
    """Settings of that kind. Raises ValidationError."""
    given = dict(values)
    sources: dict[str, Any] = {"_build_sources": ((InitSettingsSource(kind, given),), given)}
    return kind(**sources)
