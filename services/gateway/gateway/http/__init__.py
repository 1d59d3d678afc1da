"""Bodies, deadlines, event streams, idempotency and admission: HTTP without any of our resources."""
