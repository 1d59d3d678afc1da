"""The connection to Redis, the names of its keys, and fencing tokens."""
