"""Finds an answer that is given in words, ``Therefore, the answer is …``: the form of MemAgent's tables.

Source: MemAgent (arXiv 2507.02259), its evaluation's ``recurrent`` and ``openai`` ways of asking.
"""

_PHRASE = "the answer is"
_END_MARKS = ("<｜Assistant｜>", "<｜end▁of▁sentence｜>")


def answer_in_words(text: str) -> str | None:
    """What follows the text's last ``the answer is``, without asterisks and full stops around it; None without one."""
    _, phrase, after = text.replace("*", "").rpartition(_PHRASE)
    if not phrase:
        return None
    for mark in _END_MARKS:
        after = after.replace(mark, "")
    return after.strip().strip(".").strip()
