"""The page of cost centres: which are confirmed, by whom, and which wait for it."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import people
from accounts.cost_centres import actions
from accounts.cost_centres.api import visible_to
from accounts.cost_centres.models import CostCentre
from accounts.current_user import STATUS, add_refusal, sent, visitor, with_refusal
from accounts.forms import CostCentreForm
from accounts.models import User
from accounts.roles import Permission
from web.refusals import BadInput, Refused

MAX_SHOWN = 500


@dataclass(frozen=True, kw_only=True)
class Line:
    """A cost centre in the list, with what the reader may do with it."""

    row: CostCentre
    tone: str
    word: str
    verb: str
    href: str
    may: bool


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def cost_centres(request: HttpRequest) -> HttpResponse:
    """The list; platform leads put one on it."""
    user = visitor(request)
    form, status = CostCentreForm(sent(request)), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            code = form.cleaned_data["code"].strip()
            before = (
                visible_to(user)
                .filter(code__iexact=code, confirmed_at__isnull=False)
                .first()
            )
            try:
                made = actions.confirm(
                    code,
                    by=user,
                    now=timezone.now(),
                    owner=_owner(form.cleaned_data["owner"]),
                )
                messages.success(request, _confirmed_words(made, before))
                return redirect("cost-centres")
            except Refused as refusal:
                status = add_refusal(form, refusal)
    response = cost_centres_page(request, user, form=form, status=status)
    return with_refusal(response, form) if status != 200 else response


def _confirmed_words(made: CostCentre, before: CostCentre | None) -> str:
    """That it is confirmed, or of one that was so before, who answers for it now."""
    owner = made.owner.name if made.owner is not None else "Nobody"
    if before is None:
        return f"{made.code} is confirmed. {owner} answers for it."
    instead = f", instead of {before.owner.name}" if before.owner is not None else ""
    return f"{owner} answers for {made.code} now{instead}."


def cost_centres_page(
    request: HttpRequest,
    user: User,
    *,
    form: CostCentreForm | None = None,
    status: int = 200,
    refused: str = "",
) -> HttpResponse:
    """The list, with why something was refused."""
    context = {
        "form": form or CostCentreForm(),
        "rows": [
            _row(each, user) for each in visible_to(user).order_by("code")[:MAX_SHOWN]
        ],
        "may_add": user.may(Permission.MANAGE_COST_CENTRES),
        "refused": refused,
    }
    return render(request, "accounts/cost_centres.html", context, status=status)


@require_POST
def confirm(request: HttpRequest, code: str) -> HttpResponse:
    """Confirm one that a team has named; a stranger's looks like a missing one."""
    return _act(request, code, actions.confirm, "is confirmed")


@require_POST
def withdraw(request: HttpRequest, code: str) -> HttpResponse:
    """Take a confirmation back."""
    return _act(request, code, actions.withdraw, "is not confirmed any more")


def _act(
    request: HttpRequest, code: str, action: Callable[..., CostCentre], words: str
) -> HttpResponse:
    user = visitor(request)
    row = get_object_or_404(visible_to(user), code=code)
    try:
        action(row.code, by=user, now=timezone.now())
    except Refused as refusal:
        response = cost_centres_page(
            request, user, status=STATUS[refusal.sort], refused=refusal.message
        )
        response.refusal = {"detail": refusal.message, "code": refusal.code}  # type: ignore[attr-defined]
        return response
    messages.success(request, f"{row.code} {words}.")
    return redirect("cost-centres")


def _owner(address: str) -> User | None:
    if not address:
        return None
    found = people.by_address(address)
    if found is None:
        raise BadInput(
            "Nobody of this work address has signed in here.",
            code="no_such_person",
            field="owner",
        )
    return found


def _row(row: CostCentre, user: User) -> Line:
    mine, is_confirmed = row.owner_id == user.pk, row.confirmed_at is not None
    there = "cost-centre-withdraw" if is_confirmed else "cost-centre-confirm"
    return Line(
        row=row,
        tone="good" if is_confirmed else "waiting",
        word="Confirmed" if is_confirmed else "Not confirmed",
        verb="Take back" if is_confirmed else "Confirm",
        href=reverse(there, args=[row.code]),
        may=mine or user.may(Permission.MANAGE_COST_CENTRES),
    )
