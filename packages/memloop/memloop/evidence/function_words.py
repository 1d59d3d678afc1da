"""Words that say little by themselves, and words that turn a statement round."""

from typing import Final

from memloop.evidence.language import Tables, WordSet


class _Words(Tables):
    """See ``words.toml``."""

    function_words: WordSet
    negations: WordSet
    copulas: WordSet
    before_values: WordSet
    before_names: WordSet
    between_values: WordSet
    verbs: WordSet
    before_changes: WordSet
    ands: WordSet
    thats: WordSet
    denials: WordSet
    labelled: WordSet
    with_points: WordSet
    with_commas: WordSet


WORDS: Final = _Words.read("words")
LIGHT: Final = WORDS.copulas | WORDS.before_names | WORDS.before_values
"""Words of a statement that a text may lack where nothing stands in their place: *Total: 5* says *The total is 5*."""
VERBS: Final = WORDS.copulas | WORDS.verbs
