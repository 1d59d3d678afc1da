"""The gateway between a fake engine, a fake store and a real Redis, as its own tests have it."""

from tests.gateway.conftest import engine, gateway, settings, store

__all__ = ["engine", "gateway", "settings", "store"]
