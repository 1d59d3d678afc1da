"""What an engine must do for the loops to work, as small checks over HTTP; see ``suite``."""
