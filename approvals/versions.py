"""Which version of a request somebody saw: its ETag, and what they send back of it (RFC 9110, RFC 6585)."""

import hashlib
import re

from rest_framework.exceptions import APIException
from rest_framework.request import Request as Call

ETAG = re.compile(r'"([0-9]{1,9})(\.[0-9a-f]+)?"')
NEVER = -1


class VersionMissing(APIException):
    """A decision came without the version that was looked at."""

    status_code = 428
    default_detail = "Send If-Match with the ETag of this as you saw it."
    default_code = "version_missing"


def etag_of(version: int, rendered: bytes) -> str:
    """A strong ETag: the version before the dot, what else the answer says behind it."""
    return f'"{version}.{hashlib.sha256(rendered).hexdigest()[:16]}"'


def seen_version(call: Call) -> int:
    """The version named in If-Match, one that never exists for what is not an ETag of ours.

    Raises VersionMissing without the header and for `*`, which would agree to anything.
    """
    given = call.headers.get("If-Match", "").strip()
    if given in ("", "*"):
        raise VersionMissing
    found = ETAG.fullmatch(given)
    return int(found[1]) if found else NEVER


def is_known(call: Call, etag: str) -> bool:
    """Whether the caller has this very answer already."""
    given = call.headers.get("If-None-Match", "")
    return etag in [part.strip().removeprefix("W/") for part in given.split(",")]
