"""``memloop read``: documents to the gateway, questions about them, answers with evidence."""
