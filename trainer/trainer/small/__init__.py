"""Teaches a small pretrained model to write, relate, recall and read in ordinary English, as a LoRA."""
