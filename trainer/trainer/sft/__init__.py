"""Supervised fine-tuning before RL: the replies of good runs, each after the exact prompt that the
served loop sends.
"""
