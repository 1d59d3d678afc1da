"""Chat front ends: the user from their own header, by trusted keys alone, and no memory for their own tasks.

The requests have the shapes that Open WebUI 0.11, LibreChat 0.8, LobeChat 1.x and NextChat 2.16 send.
"""

import hashlib

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, FakeEngine
from tests.gateway.api_rig import configured
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway

OPEN_WEBUI = "X-OpenWebUI-User-Id"
ADA = {"X-Memory-User-Id": "ada"}
TOLD: list[dict[str, object]] = [
    {"role": "user", "content": "I moved to Oslo."},
    {"role": "assistant", "content": "Nice."},
]
HISTORY = "<chat_history>\nUSER: I moved to Oslo.\nASSISTANT: Nice.\n</chat_history>"


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def system(text: str) -> dict[str, object]:
    return {"role": "system", "content": text}


TASKS: dict[str, list[dict[str, object]]] = {
    "Open WebUI, title": [
        user(f"### Task:\nWrite a title.\n### Output:\nJSON format: {{}}\n### Chat History:\n{HISTORY}")
    ],
    "Open WebUI, tags": [user(f"### Task:\nGive tags.\n\n### Guidelines:\n- Few\n\n### Chat History:\n{HISTORY}")],
    "Open WebUI, follow-ups": [user(f"### Task:\nSuggest questions.\n### Chat History:\n{HISTORY}")],
    "Open WebUI, autocompletion": [
        user(f"### Task:\nContinue.\n---\n### Context:\n{HISTORY}\n<type>General</type>  \n<text>I</text>")
    ],
    "Open WebUI, emoji": [
        user(
            "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Message: ```Hi```"
        )
    ],
    "Open WebUI, tools": [
        system("Available Tools: [] \n\nYour task is to choose and return the correct tool(s)"),
        user("Query: I moved to Oslo."),
    ],
    "Open WebUI, parts": [
        {"role": "user", "content": [{"type": "text", "text": f"### Task:\nTitle.\n### Chat History:\n{HISTORY}"}]}
    ],
    "LibreChat, title": [
        user("Provide a concise, 5-word-or-less title for the conversation.\n\nConversation:\nUser: I moved to Oslo.")
    ],
    "LibreChat, structured title": [
        user(
            "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title "
            "in it\n\nUser: I moved to Oslo."
        )
    ],
    "LibreChat, old title": [
        system("Please generate a concise, 5-word-or-less title for the conversation\n\n||>User:\nI moved to Oslo.")
    ],
    "LobeChat, title": [
        system("You are a professional conversation summarizer. Generate a concise title for it."),
        user("user: I moved to Oslo.\nassistant: Nice."),
    ],
    "LobeChat, summary": [
        system("You're an assistant who's good at extracting key takeaways from conversations and summarizing them."),
        user(f"{HISTORY}\n\nPlease summarize."),
    ],
    "NextChat, title": [*TOLD, user("Please generate a four to five word title summarizing our conversation now.")],
    "NextChat, summary": [
        *TOLD,
        system("Summarize the discussion briefly in 200 words or less to use as a prompt for future context."),
    ],
}

CHATS: dict[str, list[dict[str, object]]] = {
    "a user's own heading": [user("### Task:\nTell me about Oslo.")],
    "passages that quote a chat": [
        user(f"### Task:\nAnswer with the context.\n<context>\nOn {HISTORY}\n</context>\nWhere do I live?")
    ],
    "a title for a text": [user("Give my essay a concise title.")],
    "an earlier task's words": [user("What does 'Provide a concise, 5-word-or-less title' mean?")],
    "a task that another turn follows": [
        user(f"### Task:\nTitle.\n### Chat History:\n{HISTORY}"),
        {"role": "assistant", "content": "Oslo"},
        user("I have a cat."),
    ],
}


async def sent(gateway: Gateway, messages: list[dict[str, object]], **fields: object) -> Answer:
    return await gateway.post(CHAT, {"model": MODEL, "messages": messages, **fields}, headers=ADA)


@pytest.mark.parametrize("task", TASKS)
async def test_a_front_ends_own_task_is_neither_recalled_into_nor_remembered(
    gateway: Gateway, engine: FakeEngine, store: FakeStore, task: str
) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    answer = await sent(gateway, TASKS[task])
    assert (answer.status, "memory" in answer.json) == (200, False)
    assert engine.last.json["messages"] == TASKS[task]
    assert (store.searches, await gateway.queued_turns()) == ([], [])


async def test_a_task_that_asks_for_memory_gets_a_note(gateway: Gateway, store: FakeStore) -> None:
    answer = await sent(gateway, TASKS["Open WebUI, title"], memory={"user_id": "ada"})
    assert "task of a chat front end" in answer.json["memory"]["error"]
    assert (store.searches, await gateway.queued_turns()) == ([], [])


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
async def test_a_task_is_one_on_every_api(gateway: Gateway, store: FakeStore, path: str) -> None:
    said = TASKS["Open WebUI, tags"]
    body = (
        {"model": MODEL, "max_tokens": 9, "messages": said} if "messages" in path else {"model": MODEL, "input": said}
    )
    answer = await gateway.post(path, body, headers=ADA)
    assert answer.status == 200, answer.raw
    assert (store.searches, await gateway.queued_turns()) == ([], [])


@pytest.mark.parametrize("header", ["X-Memory-Task", "X-OpenWebUI-Task"])
async def test_a_header_names_a_task_whatever_its_words(gateway: Gateway, store: FakeStore, header: str) -> None:
    task = await gateway.post(CHAT, question("Name this chat."), headers={**ADA, header: "title_generation"})
    assert (task.status, store.searches, await gateway.queued_turns()) == (200, [], [])
    for unset in ("", "{{TASK}}"):  # Open WebUI fills in its custom header for tasks alone
        await gateway.post(CHAT, question("I moved."), headers={**ADA, header: unset})
    assert (len(store.searches), len(await gateway.queued_turns())) == (2, 2)


@pytest.mark.parametrize("chat", CHATS)
async def test_a_users_own_words_that_look_alike_have_memory(gateway: Gateway, store: FakeStore, chat: str) -> None:
    await sent(gateway, CHATS[chat])
    assert (len(store.searches), len(await gateway.queued_turns())) == (1, 1)


def naming(settings: GatewaySettings, **more: str) -> GatewaySettings:
    changes = {"user_headers": f"x-librechat-user, {OPEN_WEBUI}", **more}
    return GatewaySettings.model_validate({**settings.model_dump(), **changes})


async def test_a_trusted_keys_header_names_the_user(settings: GatewaySettings, store: FakeStore) -> None:
    keys = f"{configured('a', 'front')},{configured('a', 'other')}"
    trusted = hashlib.sha256(b"front").hexdigest()[:16]
    async with running_gateway(naming(settings, api_keys=keys, user_header_keys=trusted)) as gateway:
        for key, searches in (("front", 1), ("other", 1), ("wrong", 1)):
            headers = {"X-API-Key": key, OPEN_WEBUI: "ada"}
            answer = await gateway.post(CHAT, question("Where do I live?"), headers=headers)
            assert answer.status == (401 if key == "wrong" else 200)
            assert ("memory" in answer.json, len(store.searches)) == (key == "front", searches)
    assert store.searches[0].namespace.user_id == "ada"


async def test_our_own_header_and_the_first_of_the_setting_come_first(
    settings: GatewaySettings, store: FakeStore
) -> None:
    both = {OPEN_WEBUI: "web", "X-LibreChat-User": "libre"}
    async with running_gateway(naming(settings)) as gateway:
        for headers in (both, {**both, **ADA}, {OPEN_WEBUI: ""}):
            assert (await gateway.post(CHAT, question("Hi."), headers=headers)).status == 200
    assert [search.namespace.user_id for search in store.searches] == ["libre", "ada"]


async def test_a_front_ends_header_names_the_user_on_every_api(settings: GatewaySettings, store: FakeStore) -> None:
    bodies = {
        "/v1/messages": {"model": MODEL, "max_tokens": 9, "messages": [user("Hi.")]},
        "/v1/responses": {"model": MODEL, "input": "Hi."},
    }
    async with running_gateway(naming(settings)) as gateway:
        for path, body in bodies.items():
            assert (await gateway.post(path, body, headers={OPEN_WEBUI: "ada"})).status == 200
    assert [search.namespace.user_id for search in store.searches] == ["ada", "ada"]


async def test_a_header_that_comes_twice_is_refused(settings: GatewaySettings) -> None:
    async with running_gateway(naming(settings)) as gateway:
        headers = [("Content-Type", "application/json"), (OPEN_WEBUI, "ada"), (OPEN_WEBUI, "bob")]
        async with gateway.http.post(gateway.url + CHAT, json=question("Hi."), headers=headers) as response:
            assert response.status == 400


async def test_without_the_setting_the_header_has_no_meaning(gateway: Gateway, store: FakeStore) -> None:
    await gateway.post(CHAT, question("Hi."), headers={OPEN_WEBUI: "ada"})
    assert store.searches == []


def test_keys_are_named_where_there_are_keys(settings: GatewaySettings) -> None:
    with pytest.raises(ValueError, match="MEMLOOP_USER_HEADER_KEYS"):
        naming(settings, api_keys=configured("a", "front"))
    with pytest.raises(ValueError, match="no header's name"):
        naming(settings, user_headers="X User")
