"""Container images by name, and which of them may be used. Pure."""

import re
from collections.abc import Sequence

IMAGE = re.compile(
    r"[a-z0-9][a-z0-9./_-]*(?::\d+/[a-z0-9./_-]+)?(?::[\w.-]{1,128})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


def refused_image(image: object, allowed: Sequence[str]) -> str:
    """Why an image may not be used, given the beginnings of those that may; empty when it may, and without any."""
    if not allowed or not isinstance(image, str) or image.startswith(tuple(allowed)):
        return ""
    return f"Images come from: {', '.join(allowed)}."
