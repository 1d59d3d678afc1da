"""Whether one text stands in another as whole words."""

import re

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts whose words do not stand between blanks, or take endings without one."""
_LETTER = rf"[^\W{_UNSPACED}]"


def stands_in(part: str, text: str) -> bool:
    """Return whether ``part`` stands in ``text``, and no word or number goes on at its ends; empty: never."""
    if not part:
        return False
    before = rf"(?<!{_LETTER})" if re.match(_LETTER, part) else ""
    behind = rf"(?!{_LETTER})" if re.match(_LETTER, part[-1]) else ""
    if part[0].isdigit():
        before += r"(?<!(?<!\w)[-−])(?<!\d[.,])"
    if part[-1].isdigit():
        behind += r"(?![.,]\d)"
    return re.search(before + re.escape(part) + behind, text) is not None
