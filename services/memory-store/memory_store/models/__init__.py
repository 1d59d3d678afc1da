"""The models that the settings name."""
