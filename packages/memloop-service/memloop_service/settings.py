"""The settings of every process. Each process adds its own fields in a subclass."""

import difflib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from memloop.wire.base import CheckedCopy

EMPTY_IS_UNSET: Final = BeforeValidator(lambda value: None if value == "" else value)
"""Takes an empty variable as one that is not set."""

_PREFIX: Final = "MEMLOOP_"
_ALIKE: Final = 0.9
"""A slip of a finger differs by less, in Python's ratio of matching characters."""
_OF_OTHERS: Final = frozenset({"MEMLOOP_API_KEY", "MEMLOOP_MODEL", "MEMLOOP_MODELS"})
"""Settings of another process or program that differ by less from one here."""


class ServiceSettings(CheckedCopy, BaseSettings):
    """Reads the environment, ``MEMLOOP_`` before each field's name."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", hide_input_in_errors=True
    )

    host: str = "127.0.0.1"
    port: int = Field(default=7800, ge=0, le=65_535)
    unix_socket: Annotated[Path | None, EMPTY_IS_UNSET] = None
    """Listen on this Unix socket in place of ``host`` and ``port``; who may connect depends on its folder."""
    metrics_port: Annotated[int | None, EMPTY_IS_UNSET] = Field(default=None, ge=1, le=65_535)
    """Serves ``/metrics`` on this port alone; unset: on ``port``, beside everything else."""
    max_body_bytes: int = Field(default=32 * 1024 * 1024, gt=0)
    body_timeout_s: float = Field(default=30.0, gt=0)
    body_bytes_per_s: int = Field(default=64 * 1024, ge=1)
    """How long a client may take to send a body, and for how many bytes it gets a second more."""
    head_timeout_s: float = Field(default=10.0, gt=0)
    """How long a client may take to send a request's line and headers."""
    max_connections: int = Field(default=4096, ge=1)
    """More are refused; at most half of the file descriptors that the process may open."""
    write_timeout_s: float = Field(default=60.0, gt=0)
    """Disconnect a client that reads nothing of its response for this long."""
    drain_s: float = Field(default=0.0, ge=0)
    """How long a stopping process still serves while its readiness is down; longer than load balancers need to notice.
    0 stops at once. Workers hand over their jobs instead.
    """
    stop_grace_s: float = Field(default=30.0, ge=1)
    """The time for requests in flight after the drain."""
    tls_cert: Annotated[Path | None, EMPTY_IS_UNSET] = None
    """The certificate chain that ``port`` shows, as PEM; it speaks TLS alone then. ``metrics_port`` never does."""
    tls_key: Annotated[Path | None, EMPTY_IS_UNSET] = None
    """Its private key; unset: in the same file."""
    tls_client_ca: Annotated[Path | None, EMPTY_IS_UNSET] = None
    """Authorities; every client of ``port`` must show a certificate of one of them."""
    connect_ca: Annotated[Path | None, EMPTY_IS_UNSET] = None
    """Authorities trusted beside the system's where this process connects to another part."""
    connect_cert: Annotated[Path | None, EMPTY_IS_UNSET] = None
    """The certificate chain that it shows there when it is asked for one."""
    connect_key: Annotated[Path | None, EMPTY_IS_UNSET] = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment alone: no file of variables and no folder of secrets."""
        del settings_cls, dotenv_settings, file_secret_settings
        return init_settings, env_settings

    @classmethod
    def read(cls) -> Self:
        """Read the environment of a process that starts.

        Exits with a sentence for each wrong variable, which shows no value: it may be a secret. A name that no setting
        has, but almost, gets a warning; other parts of the product have settings of their own.
        """
        for unknown, known in cls.misspelt(os.environ):
            print(f"{unknown} is not a setting; did you mean {known}?", file=sys.stderr)
        try:
            return cls()
        except ValidationError as error:
            raise SystemExit("\n".join(sentences_of(error))) from None

    @classmethod
    def misspelt(cls, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the variables that almost have a setting's name, each with that name."""
        known = {_PREFIX + field.upper() for field in cls.model_fields}
        named = known | _OF_OTHERS
        strange = sorted(name for name in names if name.upper().startswith(_PREFIX) and name.upper() not in named)
        closest = ((name, difflib.get_close_matches(name.upper(), known, n=1, cutoff=_ALIKE)) for name in strange)
        return [(name, found[0]) for name, found in closest if found]

    @model_validator(mode="after")
    def _ports(self) -> Self:
        if self.metrics_port == self.port:
            raise ValueError("MEMLOOP_METRICS_PORT must differ from MEMLOOP_PORT")
        if self.unix_socket is not None and not self.unix_socket.parent.is_dir():
            raise ValueError(f"MEMLOOP_UNIX_SOCKET: there is no folder {self.unix_socket.parent}")
        return self

    @model_validator(mode="after")
    def _whole_certificates(self) -> Self:
        if self.tls_cert is None and (self.tls_key or self.tls_client_ca):
            raise ValueError("MEMLOOP_TLS_KEY and MEMLOOP_TLS_CLIENT_CA need MEMLOOP_TLS_CERT")
        if self.connect_cert is None and self.connect_key:
            raise ValueError("MEMLOOP_CONNECT_KEY needs MEMLOOP_CONNECT_CERT")
        return self


def sentences_of(error: ValidationError) -> list[str]:
    """Return what is wrong with each variable, without its value."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        ": ".join((*((_PREFIX + "_".join(map(str, fault["loc"])).upper(),) if fault["loc"] else ()), fault["msg"]))
        for fault in faults
    ]
