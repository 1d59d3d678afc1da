"""The API process: reads the settings, builds the application, serves it. Run: ``python -m gateway.main``."""
