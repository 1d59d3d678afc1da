"""Reads mails: their heading, text and attachments; a mailbox holds one mail after another."""

import re
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from functools import partial
from typing import Final

from gateway.extract.encoding import decoded
from gateway.extract.html import page
from gateway.extract.source import Source, Unreadable, place

_HEADINGS: Final = ("Subject", "From", "To", "Cc", "Date")
_NEXT = re.compile(rb"(?:\A|\n\r?\n)From [^\n]{1,500}\n")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_READ: Final = frozenset({"text/plain", "text/html", "message/delivery-status"})
"""Kinds that are the mail itself where they have no name."""
_FORMS: Final = frozenset({"text/css", "text/javascript", "application/javascript"})
"""Kinds that a saved page holds beside its text."""
_MOST: Final = 0.5
"""Of the words of a page: a plain text that lacks as many only refers to it (``Your program shows no HTML.``)."""
_NAME_CHARS: Final = 100


def mail(source: Source) -> Iterator[str]:
    """Yield the mail, or each mail of a mailbox as a place of its own."""
    raw = source.whole()
    if not raw.startswith(b"From "):
        yield _text(source, message_from_bytes(raw, EmailMessage, policy=policy.default))
        return
    bounds = [*_NEXT.finditer(raw)]
    ends = [found.start() for found in bounds[1:]] + [len(raw)]
    for number, (found, end) in enumerate(zip(bounds, ends, strict=True), start=1):
        lines = _QUOTED.sub(rb"\1", raw[found.end() : end])
        message = message_from_bytes(lines, EmailMessage, policy=policy.default)
        yield place("mail", number, _text(source, message), title=str(message.get("Subject", "")))


def _text(source: Source, message: EmailMessage) -> str:
    parts, pictures = ["\n".join(f"{name}: {message[name]}" for name in _HEADINGS if message[name])], 0
    for part in _leaves(source, message):
        kind, named = part.get_content_type(), part.get_filename()
        if kind in _FORMS and not named:
            continue
        if part.get_content_maintype() == "image" and not named and not source.ocr:
            pictures += 1
        elif part.is_attachment() or named or kind not in _READ:
            name, charset = (named or "unnamed")[:_NAME_CHARS], part.get_content_charset() or ""
            media_type = f"{kind}; charset={charset}" if charset else kind
            text = source.attached(name, partial(_bytes, part), media_type=media_type)
            if text is not None and (named or text.strip()):
                parts.append(f"[attachment: {name}]\n\n{text}")
        else:
            parts.append(_shown(source, part))
    source.note(pictures, "picture", "pictures")
    return "\n\n".join(part for part in parts if part.strip())


def _shown(source: Source, part: MIMEPart) -> str:
    """Return the text of a part that is a page or plain."""
    declared = part.get_content_charset() or ""
    if part.get_content_type() == "text/html":
        return page(source, _bytes(part), declared=declared)
    text = "".join(decoded(source, [_bytes(part)], declared=declared)).replace("\r\n", "\n")
    # RFC 3676: blanks before these line ends are no part of the text, and nor are the ends
    return text.replace(" \n", "") if str(part.get_param("delsp", "")).lower() == "yes" else text


def _leaves(source: Source, message: MIMEPart) -> Iterator[MIMEPart]:
    """Yield the parts of a mail in their order; of alternatives the plain one, else the page, and any appointment.

    The page comes before a plain text that only refers to it.

    The standard library's ``get_body`` and ``iter_attachments`` together leave out a text behind other parts, as the
    footer of a mailing list.
    """
    if message.get_content_maintype() != "multipart" or not message.is_multipart():
        yield message
        return
    is_choice = message.get_content_type() == "multipart/alternative"
    plain, drawn = (message.get_body((kind,)) if is_choice else None for kind in ("plain", "html"))
    chosen = drawn if plain is None or (drawn is not None and _only_refers(source, plain, drawn)) else plain
    if chosen is not None:
        yield chosen
        yield from (part for part in message.iter_parts() if part.get_content_type() == "text/calendar")
        return
    for part in message.iter_parts():
        yield from _leaves(source, part)


def _only_refers(source: Source, plain: MIMEPart, drawn: MIMEPart) -> bool:
    """Return whether a plain text lacks most words of the page beside it. A page without text has none to lack."""
    aside = replace(source, notes=[])
    try:
        said, more = (set(_shown(aside, part).split()) for part in (plain, drawn))
    except Unreadable:
        return False
    return len(more - said) > _MOST * len(more)


def _bytes(part: MIMEPart) -> bytes:
    inner = part.get_content() if part.get_content_type() == "message/rfc822" else None
    if isinstance(inner, EmailMessage):
        return inner.as_bytes()
    if part.is_multipart():  # a report on a mail's delivery, which is parsed into headings
        return b"\n".join(block.as_bytes() for block in part.iter_parts())
    raw = part.get_payload(decode=True)
    return raw if isinstance(raw, bytes) else b""
