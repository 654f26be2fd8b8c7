"""Stand-ins: who decides for somebody while they are away, and in whose seats they sit themselves."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import people
from accounts.current_user import add_refusal, sent, visitor, with_refusal
from accounts.forms import StandInForm
from accounts.models import Delegation, User
from accounts.roles import DECIDING
from approvals.stand_ins import actions as lending
from web.refusals import BadInput, Refused

MOST_SUGGESTED = 50
MOST_DECLINED = 5
USUAL = timedelta(days=7)
ANSWERS: Mapping[str, Callable[..., None]] = {
    "accept": lending.accept,
    "decline": lending.decline,
}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def stand_in(request: HttpRequest) -> HttpResponse:
    """Name a stand-in, and see whom one stands in for."""
    user, now = visitor(request), timezone.now()
    form, status = (
        StandInForm(sent(request), initial={"starts_at": now, "until": now + USUAL}),
        200,
    )
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = _delegate(user, form)
                messages.success(
                    request, f"{made.to.name} is asked. It counts once they accept."
                )
                return redirect("stand-in")
            except Refused as refusal:
                status = add_refusal(form, refusal)
    rows = (
        Delegation.objects.open(now)
        .select_related("giver", "to")
        .order_by("starts_at", "pk")
    )
    context: dict[str, object] = {
        "form": form,
        "decides": lending.may_lend(user, now=now),
        "given": [*rows.filter(giver=user), *_declined(user, now=now)],
        "asked": list(rows.filter(to=user, accepted_at=None)),
        "taken": list(rows.filter(to=user, accepted_at__isnull=False)),
        "suggested": _suggested(user),
        "now": now,
    }
    response = render(request, "approvals/stand_in.html", context, status=status)
    return with_refusal(response, form) if status != 200 else response


def _declined(user: User, *, now: datetime) -> list[Delegation]:
    """Those of a time that is not over which were declined, so that their giver sees that nobody stands in."""
    rows = Delegation.objects.filter(
        giver=user, declined_at__isnull=False, until__gt=now
    )
    return list(
        rows.select_related("giver", "to").order_by("starts_at", "pk")[:MOST_DECLINED]
    )


@require_POST
def answer(request: HttpRequest, pk: int, said: str) -> HttpResponse:
    """Accept or decline to stand in; a stranger's looks like a missing one."""
    user, now = visitor(request), timezone.now()
    mine = Delegation.objects.filter(to=user).select_related("giver", "to")
    row = get_object_or_404(mine, pk=pk)
    try:
        ANSWERS[said](row, by=user, now=now)
    except Refused as refusal:
        messages.error(request, refusal.message)
    return redirect("stand-in")


@require_POST
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of one's own; a stranger's looks like a missing one."""
    user, now = visitor(request), timezone.now()
    mine = Delegation.objects.filter(Q(giver=user) | Q(to=user)).select_related(
        "giver", "to"
    )
    lending.end(get_object_or_404(mine, pk=pk), by=user, now=now)
    return redirect("stand-in")


def _delegate(user: User, form: StandInForm) -> Delegation:
    said = form.cleaned_data
    to = people.by_address(said["to"])
    if to is None:
        raise BadInput(
            "Nobody of this work address has signed in here. Look for a slip of the pen.",
            code="no_such_person",
            field="to",
        )
    return lending.lend(
        giver=user,
        to=to,
        starts_at=said["starts_at"],
        until=said["until"],
        why=said["reason"],
        now=timezone.now(),
    )


def _suggested(user: User) -> list[User]:
    """Others who decide, for the list that the browser offers while one writes."""
    seated = Q()
    for permission in DECIDING:
        seated |= Q(pk__in=people.holding(permission).values("pk"))
    return list(
        User.objects.filter(seated)
        .exclude(pk=user.pk)
        .order_by("name")[:MOST_SUGGESTED]
    )
