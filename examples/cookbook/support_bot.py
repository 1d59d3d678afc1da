"""A support bot that remembers each customer across conversations.

    MEMLOOP_URL=http://127.0.0.1:7800 python examples/cookbook/support_bot.py customer-17

The bot keeps the messages of one conversation; Memloop keeps what is worth knowing beyond it. A failed recall or write
never breaks an answer: it is reported beside it.
"""

import os
import sys
from dataclasses import dataclass, field
from typing import Any

from openai import OpenAI

SYSTEM = "You are the support desk of a bicycle shop. Be brief. Ask for the order number if you need it."


@dataclass
class Conversation:
    """One conversation with a customer."""

    client: OpenAI
    model: str
    customer: str
    messages: list[Any] = field(default_factory=lambda: [{"role": "system", "content": SYSTEM}])

    def says(self, text: str) -> str:
        """Answer the customer."""
        self.messages.append({"role": "user", "content": text})
        memory = {"user_id": self.customer, "agent_id": "support"}
        answer = self.client.chat.completions.create(
            model=self.model, messages=self.messages, extra_body={"memory": memory}
        )
        reply = answer.choices[0].message.content or ""
        self.messages.append({"role": "assistant", "content": reply})
        if trouble := getattr(answer, "memory", {}).get("error"):
            print(f"memory: {trouble}", file=sys.stderr)
        return reply


def main() -> None:
    """Talk with the customer whom the command line names."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    url = os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800")
    client = OpenAI(base_url=f"{url}/v1", api_key=os.environ.get("MEMLOOP_API_KEY", "unused-on-loopback"))
    conversation = Conversation(client, os.environ.get("MEMLOOP_MODEL", "memloop-tiny"), sys.argv[1])
    for line in sys.stdin:
        print(conversation.says(line.strip()))


if __name__ == "__main__":
    main()
