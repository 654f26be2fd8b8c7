"""Where in the body of a call a refused value stands: within `spec`, or beside it in the short form."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request as Call

from approvals.requests.wanted import BadSpec
from catalogue.offerings import OFFERINGS
from web.refusals import Refused, pointer_to

SPEC_FIELDS = frozenset(
    name for offering in OFFERINGS.values() for name in offering.spec.model_fields
)


@contextmanager
def pointing(call: Call, *, has_short_form: bool) -> Iterator[None]:
    """Refuse what is wrong with a spec at its place in the body; raises ValidationError for BadSpec.

    Forms on pages have one field for each of the spec, so that actions name it without the place.
    """
    place = "" if _is_short(call, has_short_form=has_short_form) else "spec"
    try:
        yield
    except BadSpec as refused:
        found = {
            one.field: [ErrorDetail(one.message, one.code)] for one in refused.problems
        }
        # What is no name at all has no place of its own.
        detail: Any = found.get("", found)
        raise ValidationError({place: detail} if place else detail) from refused
    except Refused as refused:
        if place and refused.field in SPEC_FIELDS:
            refused.pointer = pointer_to(place, refused.field)
        raise


def _is_short(call: Call, *, has_short_form: bool) -> bool:
    return has_short_form and "spec" not in call.data
