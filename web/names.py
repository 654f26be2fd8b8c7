"""Names that people give to what is theirs, and that stand in sentences of the portal. Pure."""

import unicodedata

from web.refusals import BadInput

LONGEST_NAME = 60
# Letters that are drawn as nothing, and marks that choose the form of what stands before them in no known font.
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
SELECTORS = range(0xE0100, 0xE01F0)
# Within a word they join its letters, or the parts of an emoji, or keep them apart.
JOINERS = frozenset("\u200c\u200d")


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
    hidden = next((one for at, one in enumerate(name) if _is_hidden(name, at)), "")
    if not hidden:
        return ""
    known = unicodedata.name(hidden, "a control character").lower()
    return f"A name is one line of characters that are seen; this one has {known}."


def _is_hidden(name: str, at: int) -> bool:
    """Whether nobody sees the character there; a joiner between two that are seen is read with them."""
    one = name[at]
    if one in JOINERS:
        around = name[at - 1 : at] + name[at + 1 : at + 2]
        return len(around) < 2 or not around.isprintable() or " " in around
    return not one.isprintable() or one in FILLERS or ord(one) in SELECTORS


def checked_name(text: str, *, field: str) -> str:
    """A name without spaces around it; raises BadInput (`unreadable_name`) as `refused_name` says."""
    if refused := refused_name(text):
        raise BadInput(refused, code="unreadable_name", field=field)
    return text.strip()
