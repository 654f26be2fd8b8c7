"""What a person can cause and is told: one shape for page and API."""

from collections.abc import Sequence
from enum import StrEnum


class Sort(StrEnum):
    """What sort of refusal; pages and API turn it into 422, 403, 404, 409, 412 and 503."""

    INPUT = "input"
    RIGHTS = "rights"
    MISSING = "missing"
    CONFLICT = "conflict"
    STALE = "stale"
    AWAY = "away"


def pointer_to(*names: str) -> str:
    """The JSON pointer to the value under these names, one within the other (RFC 6901)."""
    escaped = (name.replace("~", "~0").replace("/", "~1") for name in names)
    return "".join(f"/{name}" for name in escaped)


class Refused(Exception):
    """Something asked for and not done, with nothing changed; the message says why and what to do.

    `code` is for machines, `field` names the input at fault, empty when it is no single one. `pointer` leads to it in
    the body of a call where it does not stand there under this name alone.
    """

    sort = Sort.INPUT

    def __init__(
        self, message: str, *, code: str, field: str = "", pointer: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.field = message, code, field
        self.pointer = pointer


class BadInput(Refused):
    """A value that cannot be taken."""


class BadDocument(BadInput):
    """A document that cannot be taken; `problems` are (place in it, what is wrong) pairs, of which there is one."""

    def __init__(self, problems: Sequence[tuple[str, str]], *, code: str) -> None:
        place, what = problems[0]
        first = f"{place}: {what}" if place else what
        more = f" And {len(problems) - 1} more." if len(problems) > 1 else ""
        super().__init__(first + more, code=code, field="document")
        self.problems = tuple(problems)


class BadValues(BadInput):
    """Several values that cannot be taken; `problems` has one for each, of which there is one at least."""

    def __init__(self, problems: Sequence[BadInput]) -> None:
        first = problems[0]
        super().__init__(first.message, code=first.code, field=first.field)
        self.problems = tuple(problems)


class NoRight(Refused):
    """The person may not do this; the message says who may."""

    sort = Sort.RIGHTS


class Missing(Refused):
    """What is named is not there; the message may say what is, to whom may see it."""

    sort = Sort.MISSING


class Conflict(Refused):
    """What is asked does not fit what is there."""

    sort = Sort.CONFLICT


class Stale(Refused):
    """The object has changed since the person looked at it."""

    sort = Sort.STALE


class Away(Refused):
    """It would need an outside system that does not answer now; the same may be asked again later."""

    sort = Sort.AWAY
