"""An engine for the tests of the page Read: it notes the facts of a section, and answers from its notes."""

import re

from tests.fakes.job_engine import Body, Reply, last_text

FACT = "The code of the harbour is 482."
QUESTION = "What is the code of the harbour?"
DROP = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, { type: "text/plain" }));
  const place = [...document.querySelectorAll("label")].find((label) => label.textContent.includes("Drop a file"));
  place.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""
"""Drops a file of that name and text, as a hand would."""
_FACT = re.compile(r"The code of the harbour is (\d+)\.")
_MEMORY = re.compile(r"<memory>\n(.*?)\n</memory>", re.DOTALL)
_SECTION = re.compile(r"<section>\n(.*)\n</section>", re.DOTALL)


def document(paragraphs: int) -> str:
    """A text of that many paragraphs. The fact comes three times: a chunk may begin within one of them."""
    lines = [f"Paragraph {number} tells of wind and waves and of ships that pass." for number in range(paragraphs)]
    for quarter in (1, 2, 3):
        lines[paragraphs * quarter // 4] += f" {FACT}"
    return "\n\n".join(lines)


def answer(body: Body) -> Reply:
    """A reply to any prompt of the default profile."""
    prompt = last_text(body)
    if section := _SECTION.search(prompt):
        return _noted(prompt, section[1])
    known = _FACT.search(prompt)
    return f"\\boxed{{{known[0] if known else 'Unknown.'} It was painted green in spring.}}"


def _noted(prompt: str, section: str) -> str:
    numbers = re.findall(r"Paragraph (\d+)", section)
    known = _FACT.search(section) or _FACT.search(_memory_in(prompt))
    notes = [f"The text went to paragraph {numbers[-1]}."] if numbers else []
    return " ".join([*notes, *([known[0]] if known else [])]) or "Nothing yet."


def _memory_in(prompt: str) -> str:
    found = _MEMORY.search(prompt)
    return found[1] if found else ""
