"""What the views of pages share: who looks, what was sent, and how a refused form is answered and remembered."""

from collections.abc import Callable, Mapping

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404

from accounts.models import Team, User
from web.refusals import BadDocument, BadValues, NoRight, Refused, Sort

STATUS = {
    Sort.INPUT: 422,
    Sort.RIGHTS: 403,
    Sort.MISSING: 404,
    Sort.CONFLICT: 409,
    Sort.STALE: 412,
    Sort.AWAY: 503,
}


def visitor(request: HttpRequest) -> User:
    """The signed-in person; raises PermissionDenied for anybody else, whom the middleware lets nowhere near."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def visitor_whom(request: HttpRequest, allows: Callable[[User], None]) -> User:
    """The signed-in person, whom `allows` lets through or refuses with NoRight: that becomes PermissionDenied."""
    user = visitor(request)
    try:
        allows(user)
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    return user


def visible_team(user: User, slug: str) -> Team:
    """The team in an address, if this person may see it; no query for one of their own. Raises Http404."""
    own = next((team for team in user.teams if team.slug == slug), None)
    return own or get_object_or_404(Team.objects.visible_to(user), slug=slug)


def sent(request: HttpRequest) -> QueryDict | None:
    """What a form is bound to: None before it is sent; an empty POST is sent too, and answered as any invalid form."""
    return request.POST if request.method == "POST" else None


def tell_refusal(request: HttpRequest, refusal: Refused) -> None:
    """Say on the next page what a button was refused; for want of a right it becomes PermissionDenied."""
    if refusal.sort is Sort.RIGHTS:
        raise PermissionDenied(refusal.message) from refusal
    messages.warning(request, refusal.message)


def add_refusal(
    form: BaseForm, refusal: Refused, *, shown_at: Mapping[str, str] | None = None
) -> int:
    """Put an action's refusal at its field, or above all fields; returns the HTTP status it is answered with.

    One of several values stands at each of them. `shown_at` names the field of the form for values that it asks for
    under another name.
    """
    each = refusal.problems if isinstance(refusal, BadValues) else (refusal,)
    for one in each:
        field = (shown_at or {}).get(one.field, one.field)
        form.add_error(field if field in form.fields else None, one.message)
    return STATUS[refusal.sort]


def add_document_refusal(
    form: BaseForm, refusal: Refused, *, field: str = "yaml"
) -> tuple[list[dict[str, str]], int]:
    """The same where a document may be at fault: also the places in it that cannot be taken, for the page's list."""
    if not isinstance(refusal, BadDocument):
        return [], add_refusal(form, refusal)
    many = len(refusal.problems)
    form.add_error(
        field, f"{many} place{'s' if many > 1 else ''} in it cannot be taken."
    )
    return [{"place": place, "what": what} for place, what in refusal.problems], STATUS[
        refusal.sort
    ]


def with_refusal(
    response: HttpResponse, form: BaseForm, *, detail: str = "", code: str = "not_taken"
) -> HttpResponse:
    """Leave on the answer what was refused, for the audit log; `detail` is the first error where none is given."""
    fields = {name: " ".join(map(str, errors)) for name, errors in form.errors.items()}
    said = detail or next(iter(fields.values()), "The form was not taken.")
    response.refusal = {"detail": said, "code": code, "fields": fields}  # type: ignore[attr-defined]
    return response
