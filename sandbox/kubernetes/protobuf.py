"""Bodies in protobuf, as typed clients may send them: the access reviews of `kubectl auth can-i`, and no others.

The envelope is four bytes and a `runtime.Unknown`; field numbers are those of k8s.io/api/authorization/v1.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.kubernetes.status import Refusal, bad_request

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
RAW, SPEC = 2, 2
LENGTH_DELIMITED, VARINT = 2, 0
RESOURCE: Mapping[int, str] = {
    1: "namespace",
    2: "verb",
    3: "group",
    4: "version",
    5: "resource",
    6: "subresource",
    7: "name",
}
PATH: Mapping[int, str] = {1: "path", 2: "verb"}


def access_review(body: bytes) -> dict[str, Any]:
    """The spec of a SelfSubjectAccessReview; raises 400 for what is none."""
    if not body.startswith(MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message, expected prefix 'k8s\\x00'"
        )
    spec = _inner(_inner(body[len(MAGIC) :], RAW), SPEC)
    found: dict[str, Any] = {}
    for number, value in _fields(spec):
        if number in (1, 2):
            name, names = (("resourceAttributes", RESOURCE), ("nonResourceAttributes", PATH))[number - 1]
            found[name] = {names[at]: text.decode() for at, text in _fields(value) if at in names and text}
    return found


def unsupported() -> Refusal:
    """415 for any other body in protobuf."""
    text = "the body of the request was in an unknown format - accepted media types include: application/json"
    return Refusal(415, text, "UnsupportedMediaType")


def _inner(message: bytes, number: int) -> bytes:
    return next((value for at, value in _fields(message) if at == number), b"")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that have a length; numbers are skipped."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        if key & 7 == VARINT:
            _, at = _number(message, at)
            continue
        if key & 7 != LENGTH_DELIMITED:
            raise bad_request("proto: illegal wireType")
        length, at = _number(message, at)
        if at + length > len(message):
            raise bad_request("unexpected EOF")
        yield key >> 3, message[at : at + length]
        at += length


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at
    raise bad_request("unexpected EOF")
