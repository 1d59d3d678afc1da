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
    heading = [f"{name}: {message[name]}" for name in _HEADINGS if message[name]]
    body = message.get_body(("plain", "html"))
    parts = ["\n".join(heading), ""]
    if body is not None:
        declared = body.get_content_charset() or ""
        if body.get_content_type() == "text/html":
            parts[1] = page(source, _bytes(body), declared=declared)
        else:
            parts[1] = "".join(decoded(source, [_bytes(body)], declared=declared)).replace("\r\n", "\n")
    for attachment in message.iter_attachments():
        name = (attachment.get_filename() or "unnamed")[:_NAME_CHARS]
        try:
            parts.append(f"[attachment: {name}]\n\n{_attached(source, attachment, name)}")
        except Exception as error:  # noqa: BLE001 - an attachment that no parser reads must not hide the mail
            why = str(error) if isinstance(error, Unreadable) else "it is damaged"
            source.notes.append(f"attachment {name}: {why}")
    return "\n\n".join(part for part in parts if part.strip())


def _attached(source: Source, part: MIMEPart, name: str) -> str:
    kind = part.get_content_type()
    inner = part.get_content() if kind == "message/rfc822" else None
    raw = inner.as_bytes() if isinstance(inner, EmailMessage) else _bytes(part)
    charset = part.get_content_charset() or ""
    return source.inside(raw, name=name, media_type=f"{kind}; charset={charset}" if charset else kind)


def _bytes(part: MIMEPart) -> bytes:
    raw = part.get_payload(decode=True)
    return raw if isinstance(raw, bytes) else b""
