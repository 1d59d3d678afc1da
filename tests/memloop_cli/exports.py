"""Made-up files in the shapes of other systems' exports."""

from typing import Any

Json = dict[str, Any]


def node(name: str, parent: str | None, role: str, text: str, at: float | None, **message: Any) -> Json:
    """A node of a ChatGPT conversation's mapping."""
    content = {"content_type": "text", "parts": [text]}
    body: Json = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": content,
    }
    more: Json = {"recipient": "all", "weight": 1.0, "metadata": {}, "status": "finished_successfully"}
    return {"id": name, "parent": parent, "children": [], "message": {**body, **more, **message}}


def chatgpt_conversation(number: int = 1) -> Json:
    """A conversation in which the first prompt was edited: the newer branch is the current one."""
    nodes = [
        {"id": "root", "parent": None, "children": ["system"], "message": None},
        node("system", "root", "system", "", None, weight=0.0),
        node("old", "system", "user", "My cat is called Ink.", 1700000000.5),
        node("new", "system", "user", f"My cat number {number} is called Inky.", 1700000100.25),
        node("tool", "new", "tool", "search()", 1700000101.0),
        node("thought", "tool", "assistant", "Let me see.", 1700000102.0, channel="commentary"),
        node("reply", "thought", "assistant", "A fine name.", 1700000103.0),
    ]
    picture = {"content_type": "multimodal_text", "parts": [{"asset_pointer": "file-service://x"}, "Look at her."]}
    nodes.append(node("picture", "reply", "user", "", 1700000200.0, content=picture))
    return {
        "title": "Cats",
        "create_time": 1699999999.0,
        "update_time": 1700000200.0,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": "picture",
        "conversation_id": f"c-{number}",
        "id": f"c-{number}",
    }


def chatgpt_voice_chat() -> Json:
    """A spoken conversation: each message has its sound, and what was understood, in either order."""

    def spoken(text: str, direction: str) -> list[Json]:
        words = {"content_type": "audio_transcription", "text": text, "direction": direction, "decoding_id": None}
        sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1", "format": "wav"}
        return [words, sound] if direction == "in" else [sound, words]

    said = {"content_type": "multimodal_text", "parts": spoken("My boat is called Nora.", "in")}
    answered = {"content_type": "multimodal_text", "parts": spoken("What a lovely name.", "out")}
    nodes = [
        node("said", None, "user", "", 1700000000.0, content=said),
        node("answered", "said", "assistant", "", 1700000001.0, content=answered),
    ]
    return {"conversation_id": "v-1", "mapping": {one["id"]: one for one in nodes}, "current_node": "answered"}


CLAUDE: Json = {
    "uuid": "k-1",
    "name": "Tea",
    "created_at": "2024-05-01T08:00:00.000000Z",
    "updated_at": "2024-05-01T08:05:00.000000Z",
    "account": {"uuid": "a"},
    "chat_messages": [
        {
            "uuid": "k-1-1",
            "text": "I drink oolong.",
            "content": [{"type": "text", "text": "I drink oolong."}],
            "sender": "human",
            "created_at": "2024-05-01T08:00:01.500000Z",
            "attachments": [],
            "files": [],
        },
        {
            "uuid": "k-1-2",
            "text": "",
            "content": [
                {"type": "thinking", "thinking": "Tea."},
                {"type": "tool_use", "name": "search", "input": {}},
                {"type": "text", "text": "Oolong it is."},
            ],
            "sender": "assistant",
            "created_at": "2024-05-01T08:00:09Z",
        },
        {"uuid": "k-1-3", "text": "Older form.", "sender": "human", "created_at": "2024-05-01T08:01:00Z"},
        {"uuid": "k-1-4", "content": [{"type": "tool_result", "content": []}], "sender": "assistant"},
    ],
}

MEM0: list[Json] = [
    {
        "id": "m-1",
        "memory": "Likes hiking.",
        "user_id": "alex",
        "agent_id": None,
        "metadata": {"mood": "good"},
        "categories": ["hobbies"],
        "created_at": "2024-02-03T04:05:06.789-08:00",
        "updated_at": "2024-02-04T00:00:00-08:00",
    },
    {"id": "m-2", "memory": "Lives in Oslo.", "user_id": "berta", "agent_id": "guide", "metadata": None},
]

ZEP: list[Json] = [
    {
        "thread_id": "t-1",
        "user_id": "zoe",
        "messages": [
            {"uuid": "z-1", "role": "user", "name": "Zoe", "content": "I ski.", "created_at": "2025-01-02T03:04:05Z"},
            {"uuid": "z-2", "role": "assistant", "content": "Where?", "created_at": "2025-01-02T03:04:09Z"},
        ],
        "row_count": 2,
        "total_count": 2,
    },
    {
        "session_id": "s-2",
        "user_id": "zoe",
        "messages": [
            {"uuid": "z-3", "role_type": "user", "role": "Zoe", "content": "In Gstaad.", "created_at": "2023-01-01"},
            {"uuid": "z-4", "role_type": "tool", "role": "map", "content": "{}"},
        ],
        "facts": [{"uuid": "f-1", "fact": "Zoe skis in Gstaad.", "created_at": "2023-01-01T00:00:00Z"}],
    },
]

LANGGRAPH: list[Json] = [
    {
        "namespace": ["memories", "lena"],
        "key": "k1",
        "value": {"kind": "Memory", "content": {"content": "Lena paints."}},
        "created_at": "2024-08-01T10:00:00+00:00",
        "updated_at": "2024-08-02T10:00:00+00:00",
    },
    {"prefix": "memories.lars", "key": "k2", "value": '{"text": "Lars sails."}', "updated_at": "2024-08-03 10:00:00"},
    {"namespace": ["memories", "lena"], "key": "k3", "value": {"city": "Graz", "since": 2020}},
]

CHATS: list[Any] = [
    {
        "id": "j-1",
        "user_id": "jo",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "I bake."}], "timestamp": 1710000000},
            {"role": "assistant", "content": "Bread?", "timestamp": 1710000005000},
        ],
    },
    [{"role": "user", "content": "A bare list."}],
    {"role": "user", "content": "A single turn.", "created_at": "2024-01-01"},
]

CLAUDE_MEMORIES: Any = [
    {
        "conversations_memory": "**Work context**\n\nAda keeps bees.\n\nShe sells honey.\n\n# Travel\n\nOslo in May.",
        "project_memories": {"p-1": "The hives stand at the mill.", "p-2": None},
        "account_uuid": "a-1",
    }
]
