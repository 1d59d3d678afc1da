"""Codes of the world in several wordings, under keys as different writers choose them; in two halves."""

from __future__ import annotations

TRAINED_CODES = ("vault code", "alarm code", "garage code", "laptop code", "router code", "badge number")
HELD_OUT_CODES = ("locker code", "elevator code", "studio code", "parking number", "scooter number", "printer number")
"""In no related memory of the training: they measure whether the skill reaches other things."""

KEYS = ("{attribute}", "digits of the {noun}", "what {who} types at the {noun}", "{noun} secret of {who}")
WORDINGS = (
    "The {attribute} of {who} is {value}.",
    "{who}'s {noun} has the digits {value}.",
    "For the {noun}, {who} now uses {value}.",
)
SAID = ("My {attribute} is {value}.", "Please remember that my {attribute} is {value}.")
"""In the user's own words: a text that is stored verbatim, and is its own key."""
TRAINED_ASIDES = (
    "{who} keeps an umbrella beside the {noun}.",
    "{who} has painted the {noun} green.",
    "{who} cannot find the {noun} today.",
    "The {noun} of {who} was dear.",
)
"""Facts of a person and a thing that state no code."""
HELD_OUT_ASIDES = (
    "{who} bought the {noun} last spring.",
    "{who} dreams of a second {noun}.",
    "{who} shares the {noun} with a cousin.",
)


def noun_of(attribute: str) -> str:
    """Return the thing that a code opens or names: its first word."""
    return attribute.partition(" ")[0]
