"""Reads mails: their heading, text and attachments; a mailbox holds one mail after another."""

import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from typing import Final

from gateway.extract.encoding import decoded
from gateway.extract.html import page
from gateway.extract.source import Source, Unreadable, place

_HEADINGS: Final = ("Subject", "From", "To", "Cc", "Date")
_NEXT = re.compile(rb"(?:\A|\n\r?\n)From [^\n]{1,500}\n")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_READ: Final = frozenset({"text/plain", "text/html", "message/delivery-status"})
"""Kinds that are the mail itself where they have no name."""
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
    parts = ["\n".join(f"{name}: {message[name]}" for name in _HEADINGS if message[name])]
    for part in _leaves(message):
        kind, named = part.get_content_type(), part.get_filename()
        declared = part.get_content_charset() or ""
        if part.is_attachment() or named or kind not in _READ:
            name = (named or "unnamed")[:_NAME_CHARS]
            try:
                text = _attached(source, part, name)
                parts.append(f"[attachment: {name}]\n\n{text}" if named or text.strip() else "")
            except Exception as error:  # noqa: BLE001 - an attachment that no parser reads must not hide the mail
                why = str(error) if isinstance(error, Unreadable) else "it is damaged"
                source.notes.append(f"attachment {name}: {why}")
        elif kind == "text/html":
            parts.append(page(source, _bytes(part), declared=declared))
        else:
            parts.append("".join(decoded(source, [_bytes(part)], declared=declared)).replace("\r\n", "\n"))
    return "\n\n".join(part for part in parts if part.strip())


def _leaves(message: MIMEPart) -> Iterator[MIMEPart]:
    """Yield the parts of a mail in their order; of alternatives the plain one, else the page.

    The standard library's ``get_body`` and ``iter_attachments`` together leave out a text behind other parts, as the
    footer of a mailing list.
    """
    if message.get_content_maintype() != "multipart" or not message.is_multipart():
        yield message
        return
    is_choice = message.get_content_type() == "multipart/alternative"
    chosen = message.get_body(("plain", "html")) if is_choice else None
    if chosen is not None:
        yield chosen
        return
    for part in message.iter_parts():
        yield from _leaves(part)


def _attached(source: Source, part: MIMEPart, name: str) -> str:
    kind = part.get_content_type()
    inner = part.get_content() if kind == "message/rfc822" else None
    raw = inner.as_bytes() if isinstance(inner, EmailMessage) else _bytes(part)
    charset = part.get_content_charset() or ""
    return source.inside(raw, name=name, media_type=f"{kind}; charset={charset}" if charset else kind)


def _bytes(part: MIMEPart) -> bytes:
    if part.is_multipart():  # a report on a mail's delivery, which is parsed into headings
        return b"\n".join(block.as_bytes() for block in part.iter_parts())
    raw = part.get_payload(decode=True)
    return raw if isinstance(raw, bytes) else b""
