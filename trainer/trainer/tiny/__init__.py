"""The tiny model of this repository: its world, tokenizer, training, evaluation and demo document."""
