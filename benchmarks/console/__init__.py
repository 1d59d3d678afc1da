"""How quick and how smooth the console is in a real Chromium."""
