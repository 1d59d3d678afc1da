"""What the pictures of the console show: a few users' memories and a ship's log. The engine follows these rules."""

import re
from typing import Final

from tests.console.scripted import kept, reply, thinking
from tests.fakes.job_engine import Body, Reply, last_text

QUESTIONS: Final = ("What does the Marigold carry, and where is she bound?",)
CARGO: Final = "The Marigold carries 482 tonnes of coal."
BOUND: Final = "The Marigold is bound for Bergen in Norway."
_UNSUPPORTED: Final = "Her captain is called Olsen."
TURNS: Final = (
    ("ann", "I live in Leeds."),
    ("ann", "I am allergic to peanuts, please remember that."),
    ("ann", "I work as a nurse at the General Infirmary, mostly at night."),
    ("ann", "My sister Marta has a dog called Rufus."),
    ("ann", "Nice weather today, isn't it?"),
    ("ann", "I like green tea more than coffee."),
    ("ben", "I am training for the marathon in May."),
    ("ben", "Please answer me in German."),
    ("chloe", "My locker code is 482."),
    ("ann", "What a lovely day!"),
    ("ann", "We moved last week: I live in York now."),
    ("ann", "And by the way, I was about to"),
)
_FACTS: Final = (
    (r"I live in (\w+)", "home town", "Ann lives in {}.", "home"),
    (r"allergic to (\w+)", "allergy", "Ann is allergic to {}.", "health"),
    (r"nurse at the ([\w ]+),", "work", "Ann works as a nurse at the {}, mostly at night.", "work"),
    (r"dog called (\w+)", "sister's dog", "Ann's sister Marta has a dog called {}.", "family"),
    (r"I like (green tea)", "likes green tea", "Ann likes {} more than coffee.", "taste"),
    (r"marathon in (\w+)", "marathon", "Ben is training for the marathon in {}.", "sport"),
    (r"answer me in (\w+)", "language", "Ben wants answers in {}.", "preference"),
    (r"locker code is (\d+)", "locker code", "The locker code of the user is {}.", "code"),
)
_WEATHER: Final = ("a light wind from the west", "rain since dawn", "fog on the water", "a fresh gale and high seas")
_SECTION: Final = re.compile(r"<section>\n(.*)\n</section>", re.DOTALL)
_MEMORY: Final = re.compile(r"<memory>\n(.*?)\n</memory>", re.DOTALL)


def log_book(days: int) -> str:
    """The text of the log, a paragraph a day; the facts stand in three of them, as in any good log."""
    entries = [
        f"Day {day}. The watch reports {_WEATHER[day * 7 % 4]}. {day * 13 % 90 + 40} miles since noon, and all is well "
        "on board. The cook asks for onions again."
        for day in range(1, days + 1)
    ]
    for third in (0, 1, 2):
        entries[days * third // 3 + 2] += f" {CARGO}"
        entries[days * third // 3 + 5] += f" {BOUND}"
    return "\n\n".join(entries)


def answer(body: Body) -> Reply:
    """A writer's decision where there are tools, else a step of a read or a chat's reply."""
    prompt = last_text(body)
    if body.get("tools"):
        return _decision("\n".join(str(turn["content"]) for turn in body["messages"] if turn["role"] == "user"))
    if section := _SECTION.search(prompt):
        return _noted(prompt, section[1])
    if "<memory>" in prompt:
        return f"\\boxed{{{CARGO} {BOUND} {_UNSUPPORTED}}}"
    if "dinner" in prompt:
        return "Wie wäre es mit einem Gemüsecurry und Reis? Nach einem langen Lauf sind Kohlenhydrate gut."
    return reply(prompt)


def _noted(prompt: str, section: str) -> str:
    before = found[1] if (found := _MEMORY.search(prompt)) else ""
    days = re.findall(r"Day (\d+)", section)
    facts = [fact for fact in (CARGO, BOUND) if fact in section or fact in before]
    return " ".join([f"The log is read up to day {days[-1]}." if days else "", *facts]).strip()


def _decision(text: str) -> Reply:
    turn = max((told for _, told in TURNS), key=text.rfind)
    turn = turn if turn in text and "dinner" not in text else text.partition("dinner")[2] or text
    if "lovely day" in turn:
        return "It is indeed."  # no decision: the write fails
    if "Nice weather" in turn:
        return thinking("ignore_memory", "Small talk holds no fact about the user.", reason="small talk")
    if "about to" in turn:
        return thinking("buffer_memory", "The sentence is not finished.", reason="the thought is not finished")
    for pattern, key, value, tag in _FACTS:
        if found := re.search(pattern, turn):
            return kept(key, value.format(found[1]), [tag])
    return thinking("ignore_memory", "A question holds no fact about the user.", reason="nothing to keep")
