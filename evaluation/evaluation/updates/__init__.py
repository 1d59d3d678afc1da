"""Measures whether changed facts replace their old state and other facts stay, on made-up cases."""
