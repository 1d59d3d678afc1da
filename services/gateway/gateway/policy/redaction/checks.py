"""Distinguishes sensitive numbers from similar ones by checksums and other tests."""

import re
from ipaddress import ip_address
from typing import Final

_SPANISH_LETTERS: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_ITALIAN_ODD: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_VERSION: Final = re.compile(r"v?\d{1,6}(?:\.\d{1,6}){1,4}[a-z0-9.-]{0,12}", re.IGNORECASE)
_VERSION_BEFORE: Final = re.compile(
    r"(?:\bv|version|release|build|firmware|driver|chrome|kernel|update)\W{0,3}$", re.IGNORECASE
)
_COMMON_WORDS: Final = """
none null true false string required optional empty changed reset invalid expired forgotten hidden unknown missing
incorrect correct wrong weak strong secure protected disabled enabled placeholder example secret password token
default redacted rotated revoked needed stored saved updated unset undefined changeme
"""
_NO_VALUES: Final = frozenset(_COMMON_WORDS.split())


def digits_of(text: str) -> str:
    """Return the text's decimal digits."""
    return "".join(char for char in text if char.isdecimal())


def passes_luhn(number: str) -> bool:
    """Return whether the digits pass the checksum of card numbers (ISO/IEC 7812-1, annex B)."""
    digits = [int(char) for char in digits_of(number)][::-1]
    return sum(digits[0::2]) % 10 == (-sum((2 * digit - 9 if digit > 4 else 2 * digit) for digit in digits[1::2])) % 10


def is_card(number: str) -> bool:
    """Return whether it is a card number: 13 to 19 digits, a network's first digits, and the checksum."""
    digits, groups = digits_of(number), [len(group) for group in re.split(r"\D+", number)]
    if len(groups) > 1 and groups not in ([4, 6, 5], [4, 6, 4]) and set(groups[:-1]) != {4}:
        return False
    return 13 <= len(digits) <= 19 and digits[0] in "23456" and len(set(digits)) > 1 and passes_luhn(digits)


def is_iban(text: str) -> bool:
    """Return whether the text passes the checksum of ISO 13616 (modulo 97)."""
    compact = "".join(text.split()).upper()
    if not 15 <= len(compact) <= 34:
        return False
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def is_phone(text: str) -> bool:
    """Return whether it has a phone's number of digits, and is no date."""
    digits = digits_of(text)
    least = 7 if text.startswith("+") else 9
    return least <= len(digits) <= 15 and len(set(digits)) > 2


def is_address(text: str, before: str) -> bool:
    """Return whether it is an IP address; after a word such as ``version``, four numbers are not."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return (text.count(":") >= 3 or "." in text) and not _VERSION_BEFORE.search(before)


def is_social_security(text: str) -> bool:
    """Return whether the number could have been issued in the United States."""
    area, group, serial = text[:3], text[4:6], text[7:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def is_spanish_id(text: str) -> bool:
    """Return whether the letter belongs to the eight digits of a DNI, or to the NIE's."""
    number = text[:-1].upper().translate(str.maketrans("XYZ", "012"))
    return _SPANISH_LETTERS[int(number) % 23] == text[-1].upper()


def is_italian_id(text: str) -> bool:
    """Return whether the last letter is the check character of a codice fiscale."""
    code = text.upper()
    values = [int(char) if char.isdecimal() else ord(char) - 65 for char in code[:15]]
    total = sum(_ITALIAN_ODD[value] for value in values[0::2]) + sum(values[1::2])
    return chr(65 + total % 26) == code[15]


def is_french_id(text: str) -> bool:
    """Return whether the two last digits are the key of the thirteen before (NIR)."""
    digits = digits_of(text)
    return len(digits) == 15 and 97 - int(digits[:13]) % 97 == int(digits[13:])


def is_brazilian_id(text: str) -> bool:
    """Return whether the two last digits are the check digits of a CPF."""
    digits = [int(char) for char in digits_of(text)]
    if len(set(digits)) == 1:
        return False
    for place in (9, 10):
        total = sum(digit * (place + 1 - at) for at, digit in enumerate(digits[:place]))
        if total * 10 % 11 % 10 != digits[place]:
            return False
    return True


def is_random(text: str) -> bool:
    """Return whether a part between ``-`` and ``_`` is long and mixes letters and digits, as generated keys do."""
    return any(len(part) >= 12 and _mixed(part) for part in re.split("[-_]", text))


def is_spoken_password(text: str) -> bool:
    """Return whether a word after "password is" looks like a password, not like the next word of a sentence."""
    return len(text) >= 6 and _mixed(text) and not _VERSION.fullmatch(text)


def is_given_password(text: str) -> bool:
    """Return whether a word after ``password:`` is a value: no placeholder, no expression, no common word."""
    if text[0] in "$<{[(*" or text.lower().strip(".…") in _NO_VALUES or "(" in text:
        return False
    return len(set(text)) > 2


def is_given_secret(text: str) -> bool:
    """Return whether a word after ``token:`` is a value: it has a digit or capitals after small letters, or is long."""
    varied = any(char.isdecimal() for char in text) or re.search("[a-z][A-Z]", text) is not None or len(text) >= 20
    return is_given_password(text) and varied and not _VERSION.fullmatch(text)


def _mixed(text: str) -> bool:
    return any(char.isdecimal() for char in text) and any(char.isalpha() for char in text)
