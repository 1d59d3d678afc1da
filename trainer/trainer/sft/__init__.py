"""Supervised fine-tuning before RL: the replies of good runs, each after the very prompt that the served loop sends."""
