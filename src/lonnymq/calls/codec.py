"""Codecs encode payloads as bytes, and decode them."""

import json
from typing import Any, Protocol

from lonnymq.calls.argument import MAX_CONTENT_BYTES
from lonnymq.errors import DecodeError, invalid
from lonnymq.texts import truncate


class Codec(Protocol):
    """Encodes payloads as bytes and decodes them. A payload that is bytes already is not encoded."""

    def encode(self, payload: Any) -> bytes: ...
    def decode(self, content: bytes) -> Any: ...


class JsonCodec:
    """Compact JSON in UTF-8."""

    def encode(self, payload: Any) -> bytes:
        encoded = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return encoded.encode("utf-8")

    def decode(self, content: bytes) -> Any:
        text = content.decode("utf-8")
        try:
            value, end = _DECODER.raw_decode(text)
        except ValueError:
            end = -1
        # Otherwise there is white space around the value, or an error.
        return value if end == len(text) else _DECODER.decode(text)


JSON = JsonCodec()
_DECODER = json.JSONDecoder()


def encode_payload(argument: str, payload: Any, codec: Codec) -> bytes:
    """Return bytes unchanged, and anything else encoded by the codec."""
    if isinstance(payload, bytes | bytearray | memoryview):
        content = bytes(payload)
    else:
        try:
            content = codec.encode(payload)
        except (TypeError, ValueError, RecursionError) as error:
            reason = truncate(str(error), 300)
            raise invalid(
                argument, payload, f"bytes, or a value that the codec can encode ({reason})"
            ) from error
    if len(content) > MAX_CONTENT_BYTES:
        raise invalid(argument, f"{len(content)} bytes", f"at most {MAX_CONTENT_BYTES} bytes")
    return content


def decode_content(content: bytes, codec: Codec, part: str, message_id: int) -> Any:
    """Decode a part of a message: its content or its state."""
    try:
        return codec.decode(content)
    except Exception as error:
        # A user's codec may raise anything.
        reason = truncate(str(error), 300)
        raise DecodeError(f"the codec cannot decode the {part} of message {message_id}: {reason}") from error
