"""The feed of changes to memories, without their texts."""
