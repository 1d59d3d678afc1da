"""Encodes an upload as ``multipart/form-data``. Source: RFC 7578; WHATWG HTML, "Multipart form data" (escapes)."""


def file_form(filename: str, content: bytes, boundary: str, *, expires_s: int | None = None) -> bytes:
    """Return the body of a file upload with OpenAI's purpose ``user_data``, deleted after ``expires_s`` seconds."""
    escaped = filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    fields = {"purpose": "user_data"}
    if expires_s is not None:
        fields |= {"expires_after[anchor]": "created_at", "expires_after[seconds]": str(expires_s)}
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ) + (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{escaped}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
