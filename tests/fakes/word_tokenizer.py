"""A tokenizer of one token per word or run of punctuation: about as many as a served model's have."""

import json


def word_tokenizer() -> str:
    """Its ``tokenizer.json``."""
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    return json.dumps({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model})
