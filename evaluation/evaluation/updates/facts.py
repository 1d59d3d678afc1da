"""Made-up facts about people: attributes with several wordings of key and statement, in two halves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attribute:
    """One property of a person that has one value at a time.

    Wordings hold ``{who}`` and ``{value}``. ``beside`` is another fact of the same person that resembles it.
    """

    keys: tuple[str, ...]
    wordings: tuple[str, ...]
    values: tuple[str, ...]
    beside: str


DEVELOPMENT = (
    Attribute(
        ("job", "profession", "what {who} does for a living", "current occupation"),
        (
            "{who} works as a {value}.",
            "{who} is employed as a {value} now.",
            "These days {who} earns a living as a {value}.",
        ),
        ("nurse", "baker", "surveyor", "bus driver", "florist", "locksmith"),
        "{who} volunteers as a lifeguard on Sundays.",
    ),
    Attribute(
        ("home town", "place of residence", "where {who} lives", "current city"),
        ("{who} lives in {value}.", "{who} has moved to {value}.", "{who}'s flat is in {value}."),
        ("Leeds", "Porto", "Ghent", "Malmo", "Turin", "Brno"),
        "{who} was born in Cadiz.",
    ),
    Attribute(
        ("car", "vehicle", "what {who} drives", "means of transport"),
        ("{who} drives a {value}.", "{who} bought a {value} and drives it daily.", "{who}'s car is a {value}."),
        ("red Skoda", "blue Fiat", "grey Volvo", "white Toyota", "green Renault", "black Mazda"),
        "{who} keeps a racing bicycle in the garage.",
    ),
    Attribute(
        ("diet", "eating habits", "how {who} eats", "food restrictions"),
        ("{who} follows a {value} diet.", "{who} eats {value} meals only.", "{who} has switched to {value} food."),
        ("vegan", "vegetarian", "gluten-free", "low-salt", "dairy-free", "halal"),
        "{who} is allergic to walnuts.",
    ),
    Attribute(
        ("training day", "gym schedule", "when {who} goes to the gym", "weekly workout"),
        ("{who} goes to the gym on {value}.", "{who}'s workout is on {value}.", "{who} trains every {value}."),
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
        "{who} sings in a choir on Sunday.",
    ),
)
"""Tried while the prompt and the least similarity were chosen."""

HELD_OUT = (
    Attribute(
        ("employer", "company", "where {who} works", "current workplace"),
        ("{who} works for {value}.", "{who} has started at {value}.", "{who}'s employer is {value}."),
        ("Norlund Foods", "Bexley Rail", "Cobalt Insurance", "Ostara Books", "Pine Street Clinic", "Fenwick Glass"),
        "{who} owns shares of Harlan Shipping.",
    ),
    Attribute(
        ("language course", "language being learned", "which language {who} studies", "evening class"),
        ("{who} is learning {value}.", "{who} takes lessons in {value}.", "{who} has taken up {value}."),
        ("Czech", "Basque", "Finnish", "Swahili", "Korean", "Greek"),
        "{who} speaks Dutch at home.",
    ),
    Attribute(
        ("favourite drink", "preferred drink", "what {who} likes to drink", "beverage of choice"),
        (
            "{who}'s favourite drink is {value}.",
            "{who} prefers {value} to any other drink.",
            "{who} likes {value} best.",
        ),
        ("green tea", "cold cocoa", "ginger beer", "mint water", "black coffee", "apple juice"),
        "{who} never drinks wine at lunch.",
    ),
    Attribute(
        ("phone number", "mobile number", "how to reach {who}", "telephone"),
        (
            "{who}'s phone number is {value}.",
            "{who} can be called at {value}.",
            "{who} has changed the number to {value}.",
        ),
        ("555-0101", "555-0134", "555-0177", "555-0142", "555-0198", "555-0123"),
        "{who}'s office is in room 412.",
    ),
    Attribute(
        ("appointment", "date with the dentist", "when {who} sees the dentist", "dental check"),
        (
            "{who} sees the dentist on {value}.",
            "{who}'s dental check was moved to {value}.",
            "{who}'s dentist expects a visit on {value}.",
        ),
        ("3 May", "9 May", "17 May", "22 May", "4 June", "11 June"),
        "{who} sees the eye doctor on 30 April.",
    ),
)
"""Reported."""

PEOPLE = ("Ann", "Boris", "Carla", "Dilan", "Edda", "Farid", "Greta", "Hugo")
