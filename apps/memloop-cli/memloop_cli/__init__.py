"""The user's command line and the local stack."""
