"""Encodes an upload as ``multipart/form-data``. Source: RFC 7578; WHATWG HTML, "Multipart form data" (escapes)."""


def file_form(filename: str, content: bytes, boundary: str) -> bytes:
    """Return the body of a file upload with OpenAI's purpose ``user_data``."""
    escaped = filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{escaped}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
