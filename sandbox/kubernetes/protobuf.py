"""Bodies in protobuf, as a stock kubectl sends them for the kinds that it was built with.

The envelope is four bytes and a `runtime.Unknown`. The tables hold the field numbers of k8s.io/api and
k8s.io/apimachinery for what `auth can-i`, `create token`, `create namespace`, `create secret`, `create role` and
`create rolebinding` fill in; any other kind is 415 here, where a real API server reads it.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sandbox.kubernetes.status import Refusal, bad_request

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
LENGTH_DELIMITED, VARINT = 2, 0
# What a field makes of the values that it has in one message, in their order.
Reader = Callable[[Sequence[bytes | int]], Any]
Fields = Mapping[int, tuple[str, Reader]]


def _bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise bad_request("proto: wrong wireType = 0")
    return value


def _text(values: Sequence[bytes | int]) -> str:
    return _bytes(values[-1]).decode(errors="replace")


def _texts(values: Sequence[bytes | int]) -> list[str]:
    return [_text([value]) for value in values]


def _base64(values: Sequence[bytes | int]) -> str:
    return base64.b64encode(_bytes(values[-1])).decode("ascii")


def _number(values: Sequence[bytes | int]) -> int:
    if isinstance(value := values[-1], bytes):
        raise bad_request("proto: wrong wireType = 2")
    return value


def _message(fields: Fields) -> Callable[[Sequence[bytes | int]], dict[str, Any]]:
    def read(values: Sequence[bytes | int]) -> dict[str, Any]:
        found: dict[int, list[bytes | int]] = {}
        for number, value in _values(b"".join(_bytes(value) for value in values)):
            found.setdefault(number, []).append(value)
        told = {
            fields[number][0]: fields[number][1](found[number])
            for number in found
            if number in fields
        }
        # What is empty is written all the same, and means that it was left out.
        return {name: value for name, value in told.items() if value}

    return read


def _messages(fields: Fields) -> Reader:
    one = _message(fields)
    return lambda values: [one([value]) for value in values]


def _by_key(content: Reader) -> Reader:
    entry = _message({1: ("key", _text), 2: ("value", content)})

    def read(values: Sequence[bytes | int]) -> dict[str, Any]:
        entries = [entry([value]) for value in values]
        return {each.get("key", ""): each.get("value", "") for each in entries}

    return read


_METADATA = _message(
    {
        1: ("name", _text),
        2: ("generateName", _text),
        3: ("namespace", _text),
        11: ("labels", _by_key(_text)),
        12: ("annotations", _by_key(_text)),
    }
)
_RULE: Fields = {
    1: ("verbs", _texts),
    2: ("apiGroups", _texts),
    3: ("resources", _texts),
    4: ("resourceNames", _texts),
    5: ("nonResourceURLs", _texts),
}
_SUBJECT: Fields = {
    1: ("kind", _text),
    2: ("apiGroup", _text),
    3: ("name", _text),
    4: ("namespace", _text),
}
_ROLE_REF: Fields = {1: ("apiGroup", _text), 2: ("kind", _text), 3: ("name", _text)}
_RESOURCE: Fields = {
    1: ("namespace", _text),
    2: ("verb", _text),
    3: ("group", _text),
    4: ("version", _text),
    5: ("resource", _text),
    6: ("subresource", _text),
    7: ("name", _text),
}
_ACCESS: Fields = {
    1: ("resourceAttributes", _message(_RESOURCE)),
    2: ("nonResourceAttributes", _message({1: ("path", _text), 2: ("verb", _text)})),
}
_OBJECT_REF: Fields = {
    1: ("kind", _text),
    2: ("apiVersion", _text),
    3: ("name", _text),
    4: ("uid", _text),
}
_TOKEN: Fields = {
    1: ("audiences", _texts),
    3: ("boundObjectRef", _message(_OBJECT_REF)),
    4: ("expirationSeconds", _number),
}
_BINDING: Fields = {
    2: ("subjects", _messages(_SUBJECT)),
    3: ("roleRef", _message(_ROLE_REF)),
}
_KINDS: Mapping[tuple[str, str], Fields] = {
    ("v1", "Namespace"): {},
    ("v1", "Secret"): {
        2: ("data", _by_key(_base64)),
        3: ("type", _text),
        4: ("stringData", _by_key(_text)),
    },
    ("rbac.authorization.k8s.io/v1", "Role"): {2: ("rules", _messages(_RULE))},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): _BINDING,
    ("authentication.k8s.io/v1", "TokenRequest"): {2: ("spec", _message(_TOKEN))},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        2: ("spec", _message(_ACCESS))
    },
}
_UNKNOWN = _message(
    {
        1: ("type", _message({1: ("apiVersion", _text), 2: ("kind", _text)})),
        2: ("raw", lambda values: _bytes(values[-1])),
    }
)


def read(body: bytes) -> dict[str, Any]:
    """The object of a body as its JSON would be; raises 400 for what is none, and 415 for a kind without a table."""
    if not body.startswith(MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message, expected prefix 'k8s\\x00'"
        )
    envelope = _UNKNOWN([body[len(MAGIC) :]])
    named: dict[str, Any] = {"apiVersion": "", "kind": ""} | envelope.get("type", {})
    fields = _KINDS.get((named["apiVersion"], named["kind"]))
    if fields is None:
        raise _unsupported()
    return named | _message({1: ("metadata", _METADATA), **fields})(
        [envelope.get("raw", b"")]
    )


def _unsupported() -> Refusal:
    text = "the body of the request was in an unknown format - accepted media types include: "
    return Refusal(
        415, text + "application/json, application/yaml", "UnsupportedMediaType"
    )


def _values(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message, each with its number."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if key & 7 != LENGTH_DELIMITED:
            raise bad_request("proto: illegal wireType")
        length, at = _varint(message, at)
        if at + length > len(message):
            raise bad_request("unexpected EOF")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at
    raise bad_request("unexpected EOF")
