"""``memloop import``: memories and chats of other systems, with their original times."""
