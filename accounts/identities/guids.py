"""The ids that Entra ID gives an application, as people copy them. Pure."""

import re
from uuid import UUID

from web.refusals import BadInput

GUID = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
EXAMPLE = "1f0d5b9e-3c4a-4a57-9d2e-8b6f0c1a2d3e"


def checked_guid(text: str, *, field: str) -> UUID:
    """The id, whatever its case and the spaces around it; raises BadInput (`not_a_guid`)."""
    if not GUID.fullmatch(text.strip()):
        raise BadInput(
            f"This is no id of Entra ID, which looks like {EXAMPLE}.",
            code="not_a_guid",
            field=field,
        )
    return UUID(text.strip())
