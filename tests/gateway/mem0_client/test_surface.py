"""Every public method of the real mem0 client, sync and async: it works here, or says plainly that it is not served.

The methods come from the client: one that a new release brings has no row and fails ``test_every_method_has_a_row``.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from mem0 import AsyncMemoryClient, MemoryClient  # pyright: ignore[reportMissingTypeStubs]
from mem0.client.project import AsyncProject, Project  # pyright: ignore[reportMissingTypeStubs]
from mem0.exceptions import MemoryError as Mem0Error  # pyright: ignore[reportMissingTypeStubs]

from tests.gateway.mem0_client.drop_in import DropIn, Kind


@dataclass(frozen=True)
class Works:
    """A call that works; ``{id}`` stands for a stored memory, ``shows`` judges the answer."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shows: Callable[[Any], bool]


@dataclass(frozen=True)
class NotServed:
    """A call that ends with 501 and a reason, or that the client itself does not have yet."""

    args: tuple[Any, ...] = ()
    raises: type[Exception] = Mem0Error


def works(*args: Any, shows: Callable[[Any], bool], **kwargs: Any) -> Works:
    return Works(args, kwargs, shows)


def not_served(*args: Any) -> NotServed:
    return NotServed(args)


SURFACE: dict[str, Works | NotServed] = {
    "add": works("I drink tea.", user_id="ann", shows=lambda got: got["status"] == "PENDING"),
    "get": works("{id}", shows=lambda got: got["memory"] == "Tea at five."),
    "get_all": works(filters={"user_id": "ann"}, shows=lambda got: got["count"] == 1),
    "search": works("tea", filters={"user_id": "ann"}, shows=lambda got: got["results"][0]["score"] > 0),
    "update": works("{id}", text="Tea at six.", shows=lambda got: got["memory"] == "Tea at six."),
    "delete": works("{id}", shows=lambda got: "deleted" in got["message"]),
    "delete_all": works(user_id="ann", shows=lambda got: "deleted" in got["message"]),
    "history": works("{id}", shows=lambda got: [step["event"] for step in got] == ["ADD"]),
    "users": works(shows=lambda got: [(one["type"], one["name"]) for one in got["results"]] == [("user", "ann")]),
    "delete_users": works(user_id="ann", shows=lambda got: "deleted" in got["message"]),
    "reset": works(shows=lambda got: "reset" in got["message"]),
    "batch_update": works([{"memory_id": "{id}", "text": "Milk."}], shows=lambda got: "1 mem" in got["message"]),
    "batch_delete": works([{"memory_id": "{id}"}], shows=lambda got: "1 mem" in got["message"]),
    "create_memory_export": not_served("{}"),
    "get_memory_export": not_served(),
    "get_summary": not_served(),
    "get_profile": not_served("ann"),
    "generate_profile": not_served("ann"),
    "get_profile_settings": not_served(),
    "update_profile_settings": not_served(True),
    "sample_profiles": not_served(),
    "get_profile_job": not_served("job"),
    "get_project": not_served(),
    "update_project": not_served(None, "Be brief."),
    "get_webhooks": not_served("p"),
    "create_webhook": not_served("https://example.org", "w", "p", ["memory_add"]),
    "update_webhook": not_served(1, "w"),
    "delete_webhook": not_served(1),
    "feedback": works("{id}", "POSITIVE", "yes", shows=lambda got: got["feedback"] == "POSITIVE"),
    "chat": NotServed(raises=NotImplementedError),
    "project.get": not_served(),
    "project.create": not_served("p"),
    "project.update": not_served("Be brief."),
    "project.delete": not_served(),
    "project.get_members": not_served(),
    "project.add_member": not_served("ann@example.org"),
    "project.update_member": not_served("ann@example.org", "OWNER"),
    "project.remove_member": not_served("ann@example.org"),
}


def public_methods(client: type, project: type) -> Iterator[str]:
    for prefix, cls in (("", client), ("project.", project)):
        for name, _ in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_"):
                yield prefix + name


@pytest.mark.parametrize("classes", [(MemoryClient, Project), (AsyncMemoryClient, AsyncProject)], ids=["sync", "async"])
def test_every_method_has_a_row(classes: tuple[type, type]) -> None:
    assert sorted(public_methods(*classes)) == sorted(SURFACE)


def filled(value: Any, item_id: str) -> Any:
    if isinstance(value, str):
        return value.replace("{id}", item_id)
    if isinstance(value, list):
        return [filled(one, item_id) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return {k: filled(v, item_id) for k, v in value.items()} if isinstance(value, dict) else value  # pyright: ignore


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_every_method_works_or_reports_that_it_is_not_served(it: DropIn, kind: Kind) -> None:
    client = await it.alice(kind)
    for method, row in SURFACE.items():
        await it.gateway.http.delete(f"{it.gateway.url}/v1/memory?user_id=ann", headers={"X-API-Key": "alice-key"})
        item_id = await client.added("Tea at five.")
        args = [filled(arg, item_id) for arg in row.args]
        if isinstance(row, Works):
            answer = await client.call(method, *args, **row.kwargs)
            assert row.shows(answer), (method, answer)
            continue
        with pytest.raises(row.raises) as refusal:
            await client.call(method, *args)
        if isinstance(refusal.value, Mem0Error):
            assert refusal.value.error_code == "HTTP_501", (method, refusal.value)
            assert refusal.value.message.startswith("Not supported. "), (method, refusal.value)
            assert refusal.value.details["error"]["code"] == "not_implemented"
