"""Names that people give to what is theirs, and that stand in sentences of the portal. Pure."""

import unicodedata

from web.refusals import BadInput

LONGEST_NAME = 60


def refused_name(text: str) -> str:
    """Why a name cannot be taken, in a sentence that names the character in its way; empty where it can.

    One that nobody sees, or that turns the direction of what follows, lets a sentence of the portal read as another.
    """
    name = text.strip()
    if not name:
        return "Give it a name."
    if len(name) > LONGEST_NAME:
        return (
            f"A name has at most {LONGEST_NAME} characters; this one has {len(name)}."
        )
    hidden = next((one for one in name if not one.isprintable()), "")
    if not hidden:
        return ""
    known = unicodedata.name(hidden, "a control character").lower()
    return f"A name is one line of characters that are seen; this one has {known}."


def checked_name(text: str, *, field: str) -> str:
    """A name without spaces around it; raises BadInput (`unreadable_name`) as `refused_name` says."""
    if refused := refused_name(text):
        raise BadInput(refused, code="unreadable_name", field=field)
    return text.strip()
