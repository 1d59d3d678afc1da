"""Small tokenizers of each family, trained here in a moment: the kinds that served models have."""

import json
from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PROSE = (
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, "
    "and nothing particular to interest me on shore, I thought I would sail about a little and see the watery "
    "part of the world. It is a way I have of driving off the spleen and regulating the circulation.\n\n"
)
SPECIAL = ("<|im_start|>", "<|im_end|>", "</think>")


@cache
def byte_level_bpe() -> str:
    """As GPT-2 and Qwen: bytes, so one character can be several tokens; trims offsets; knows special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=[*SPECIAL], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([PROSE * 3], trainer)
    return _truncating(tokenizer.to_str())


@cache
def metaspace_bpe() -> str:
    """As Llama 2: a blank is put before every text, unknown characters fall back to bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<unk>", *SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    tokenizer.train_from_iterator([PROSE * 3], trainer)
    return tokenizer.to_str()


@cache
def word_piece() -> str:
    """As BERT: lowers, strips accents, drops control characters; its tokens leave gaps in the text."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False)
    tokenizer.train_from_iterator([PROSE * 3], trainer)
    return tokenizer.to_str()


def _truncating(tokenizer_json: str) -> str:
    """The same tokenizer as some models ship it: cutting every text to 16 tokens, unless told not to."""
    cut = {"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0}
    return json.dumps({**json.loads(tokenizer_json), "truncation": cut})
