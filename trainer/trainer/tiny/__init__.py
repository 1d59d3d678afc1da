"""The tiny model that the repository ships: its world, tokenizer, training, evaluation and demo document."""
