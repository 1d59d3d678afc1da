"""Checks over HTTP that an engine supports the features that the loops need; see ``suite``."""
