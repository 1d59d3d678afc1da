"""Serves an app below a path of a proxy, which may remove that path from a request or leave it."""

from starlette.types import ASGIApp, Receive, Scope, Send


class BelowPath:
    """Removes ``root_path`` from a request's path, and leaves it in the scope for links.

    The app gets the paths of its own routes either way. Requests without the path come from probes, or from a proxy
    that has removed it.
    """

    def __init__(self, app: ASGIApp, *, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            path, raw = scope["path"], scope.get("raw_path") or b""
            if path == self._root_path or path.startswith(f"{self._root_path}/"):
                path, raw = path[len(self._root_path) :] or "/", raw[len(self._root_path) :] or b"/"
            scope = {**scope, "root_path": self._root_path, "path": path, "raw_path": raw}
        await self._app(scope, receive, send)
