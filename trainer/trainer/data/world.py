"""Yields endless turns of the tiny world to imitate: right replies of every role, in the profile's prompts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from memloop.ports import Completion
from memloop.profiles import Profile
from memloop.wire.chat import Json
from trainer.data.replies import reply_message
from trainer.data.rows import conversation_row
from trainer.tiny.curriculum import FULL
from trainer.tiny.draw import draw
from trainer.tiny.example import Role
from trainer.tiny.prose import Part, book

LOOP_ROLES: tuple[Role, ...] = ("read", "answer", "judge", "integrate", "memory")


def world_turns(profile: Profile, *, part: Part, seed: int, roles: tuple[Role, ...] = LOOP_ROLES) -> Iterator[Json]:
    """Yield rows of ``schemas.CONVERSATION``, the roles in the shares of the tiny model's curriculum."""
    shares = {role: share for role, share in FULL.shares.items() if role in roles}
    mix = replace(FULL, shares=shares, chunk_tokens=profile.budget.chunk_tokens)
    rng, prose, index = random.Random(f"{seed} {part}"), book(part), 0
    while True:
        example = draw(rng, mix, profile, prose)
        reply = reply_message(Completion(example.completion), with_tools=bool(example.tools))
        yield conversation_row(
            data_source="memloop/tiny",
            index=index,
            id_=f"{part}-{index}",
            kind=f"{example.role}/{example.kind}",
            messages=(*example.messages, reply),
            learned=[len(example.messages)],
            tools=example.tools,
            thinking=example.thinking,
        )
        index += 1
