"""The queue of an approver, the one screen on which they decide, and the policy in force."""

from datetime import datetime

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.directory import freshness
from accounts.models import User
from accounts.roles import Permission
from approvals.decisions import actions as decisions
from approvals.decisions import page as deciding
from approvals.decisions import route_words
from approvals.decisions.empty_seats import empty_seats
from approvals.decisions.forms import DecisionForm
from approvals.decisions.routing import open_step
from approvals.decisions.shortening import whole_time
from approvals.models import Decision, Request
from approvals.policy_desk.limits_page import context as policy_context
from approvals.requests import listing
from approvals.requests import page as request_page
from approvals.requests.filters import QueueFilter
from approvals.requests.presenting import instead_words
from approvals.states import State
from ui.controls import is_filtered
from web.refusals import BadInput, Refused, Sort

DONE = {
    "approve": "Approved",
    "less": "Approved for less",
    "ask": "Asked",
    "reject": "Rejected",
}


@require_safe
def approvals(request: HttpRequest) -> HttpResponse:
    """What waits for this person, longest first."""
    user, now = visitor(request), timezone.now()
    form = QueueFilter(request.GET, teams=listing.waiting_teams(user, now))
    rows = listing.queue(user, form, now=now)
    if not is_filtered(form):
        request.awaiting = getattr(rows[0], "in_all", 0) if rows else 0  # type: ignore[attr-defined]  # the frame shows it
    context = {
        "filter": form,
        "is_filtered": is_filtered(form),
        "columns": listing.QUEUE_COLUMNS,
        "rows": [listing.choosable(each, now=now) for each in rows],
        "first": reverse("approval", args=[rows[0].pk]) if rows else "",
        "more": listing.how_many_follow(rows),
    }
    return render(request, "approvals/approvals.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def approval(request: HttpRequest, pk: int) -> HttpResponse:
    """One request on one screen; POST decides it for the version that the screen showed; with `check` it only looks."""
    if request.method != "POST":
        return _screen(request, pk, DecisionForm())
    if "check" in {**request.POST, **request.GET}:
        return _screen(request, pk, DecisionForm(request.POST))
    asked = _find(visitor(request), pk)
    freshness.renew(visitor(request), now=timezone.now())
    form, status, changed = DecisionForm(request.POST), 422, []
    if form.is_valid():
        try:
            decided = decide(asked, form, by=visitor(request))
            messages.success(request, _done(form.cleaned_data["do"], decided))
            return HttpResponseRedirect(_onwards(visitor(request), pk))
        except Refused as refusal:
            status = add_refusal(form, refusal)
            if refusal.sort is Sort.STALE:
                changed = deciding.changed_since(
                    asked, form.cleaned_data["version"], now=timezone.now()
                )
    return with_refusal(
        _screen(request, pk, form, status=status, changed=changed), form
    )


@require_safe
def policy(request: HttpRequest) -> HttpResponse:
    """The policy in force in plain words with its numbers."""
    viewer = visitor(request)
    context = {
        **policy_context(timezone.now()),
        "may_see_drafts": viewer.may(Permission.SEE_POLICY_DRAFTS),
        "empty_seats": empty_seats() if viewer.may(Permission.MANAGE_POLICY) else [],
    }
    return render(request, "approvals/policy.html", context)


def decide(asked: Request, form: DecisionForm, *, by: User) -> Request:
    """Do what a clean form says; raises Refused."""
    said, now = form.cleaned_data, timezone.now()
    version, reason = said["version"], said["reason"]
    if said["do"] == "reject":
        return decisions.reject(
            asked.pk,
            by=by,
            expected_version=version,
            reason=reason,
            because=said["reason_code"] or "other",
            now=now,
        )
    if said["do"] == "ask":
        return decisions.ask_back(
            asked.pk, by=by, expected_version=version, question=reason, now=now
        )
    count, until = _said_less(asked, form) if said["do"] == "less" else (None, None)
    return decisions.approve(
        asked.pk,
        by=by,
        expected_version=version,
        count=count,
        until=until,
        reason=reason,
        now=now,
    )


def _said_less(
    asked: Request, form: DecisionForm
) -> tuple[int | None, datetime | None]:
    """How many and until when, None being all of it; raises BadInput for all of both."""
    said = form.cleaned_data
    count, until = said["count"], whole_time(asked, said["until"])
    is_less = until is not None or (count is not None and count < asked.count_now)
    # Who sees an older version is told that first, by the action.
    if said["version"] == asked.version and not is_less:
        raise BadInput(
            f"Say fewer than {asked.count_now} or an earlier end, or approve all of it."
            if asked.count_now > 1
            else "Choose an earlier end, or approve all of it.",
            code="out_of_range",
            field="count" if count is not None else "until",
        )
    return count, until


def _screen(
    request: HttpRequest,
    pk: int,
    form: DecisionForm,
    *,
    status: int = 200,
    changed: list[str] | None = None,
) -> HttpResponse:
    viewer, now = visitor(request), timezone.now()
    asked = _find(viewer, pk)
    waiting, in_all = listing.queue_beside(viewer, now)
    request.awaiting = in_all  # type: ignore[attr-defined]  # the frame shows it too
    screen = deciding.context(
        asked, viewer=viewer, queue=waiting, typed=form.typed, now=now
    )
    seen = _seen(request, asked)
    opened = form.data.get("do", "") if form.is_bound else ""
    context = {
        **screen,
        "seen": seen,
        "meanwhile": deciding.changed_since(asked, seen, now=now)
        if seen < asked.version
        else [],
        "form": form,
        "changed": changed or [],
        "opened": opened,
        "at": _ids(opened),
        "typed_count": form["count"].value() if opened == "less" else None,
        "typed_until": form["until"].value() if opened == "less" else None,
        "chosen_reason": form["reason_code"].value() if opened == "reject" else "other",
    }
    return render(request, "approvals/approval.html", context, status=status)


def _ids(opened: str) -> dict[str, str]:
    """Where the fields of the form that was sent are on the page."""
    reason = "note" if opened in ("", "approve") else f"{opened}-reason"
    return {
        "reason": reason,
        "count": "less-count",
        "until": "less-until",
        "reason_code": "reason-code",
    }


def _seen(request: HttpRequest, asked: Request) -> int:
    """The version that the page shows which asks what happened since; a page that is opened shows the newest."""
    given = request.GET.get("seen", "")
    return (
        int(given)
        if given.isascii() and given.isdigit() and len(given) < 9
        else asked.version
    )


def _find(viewer: User, pk: int) -> Request:
    found = request_page.find_for(viewer, pk, now=timezone.now())
    if found is None:
        raise Http404
    return found


def _onwards(viewer: User, pk: int) -> str:
    """The next that waits for this person, else what was just decided."""
    following = (
        Request.objects.awaiting(viewer, timezone.now())
        .exclude(pk=pk)
        .order_by(*listing.IN_TURN)
        .first()
    )
    return (
        reverse("approval", args=[following.pk])
        if following
        else reverse("request", args=[pk])
    )


def _done(what: str, decided: Request) -> str:
    """What was done, and who decides next where an approval was not the last one."""
    following = open_step(decided) if decided.state == State.WAITING else None
    if what == "ask" or following is None:
        return f"{DONE[what]}: {_name(decided)}."
    approved = following.decisions.filter(verdict=Decision.Verdict.APPROVE)
    begun = "Your approval is counted" if approved.exists() else "Your step is approved"
    less = " for less" if what == "less" else ""
    who = route_words.who(following)
    return f"{begun}{less}: {_name(decided)}. Next to decide: {who}."


def _name(decided: Request) -> str:
    """What was decided about, of how many where the votes leave fewer, and until when where they leave it shorter."""
    what = (
        f"{decided.name(decided.count_now, of=decided.count)} for {decided.team.name}"
    )
    shorter = instead_words(decided, now=timezone.now())
    return f"{what} {shorter}" if shorter else what
