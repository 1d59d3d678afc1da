"""The feed of changes to memories: read, followed, and sent to the webhooks that subscribe to it."""
