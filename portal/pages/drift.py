"""What was changed on a cluster from elsewhere, and what a platform lead does about it."""

from collections.abc import Callable
from functools import partial

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import add_refusal, tell_refusal, visitor, with_refusal
from accounts.models import User
from fleet.models import Cluster
from portal.pages import drift_board
from provisioning.drift import actions as drift_actions
from provisioning.drift import brake
from provisioning.models import Drift
from web.fields import MomentField, StrictForm
from web.refusals import Refused, Sort

Act = Callable[..., object]


class IgnoreForm(StrictForm):
    """Why, and until when."""

    reason = forms.CharField(
        max_length=drift_actions.LONGEST_REASON,
        label="Why",
        widget=forms.TextInput(
            attrs={"placeholder": "For example: a course until Friday"}
        ),
    )
    until = MomentField(label="Until", help_text="UTC, a year ahead at most.")


@require_safe
def drift(request: HttpRequest, pk: int) -> HttpResponse:
    """One difference: who, what, since when, and what can be done."""
    return _page(request, _find(visitor(request), pk), IgnoreForm())


@require_POST
def repair(request: HttpRequest, pk: int) -> HttpResponse:
    """Have it put right at once."""
    return _act(request, pk, drift_actions.repair, "A worker puts it right now.")


@require_POST
def adopt(request: HttpRequest, pk: int) -> HttpResponse:
    """Want from now on what stands on the cluster."""
    act = partial(drift_actions.adopt, seen=request.POST.get("seen", ""))
    return _act(request, pk, act, "Taken over: this is what is wanted from now on.")


@require_POST
def give_up(request: HttpRequest, pk: int) -> HttpResponse:
    """Want again what the portal would."""
    return _act(
        request,
        pk,
        drift_actions.give_up,
        "Given up: a worker puts the portal’s own values back.",
    )


@require_POST
def take_up(request: HttpRequest, pk: int) -> HttpResponse:
    """Leave it alone no longer."""
    return _act(request, pk, drift_actions.take_up, "It is looked at again now.")


@require_POST
def ignore(request: HttpRequest, pk: int) -> HttpResponse:
    """Leave it alone until a date."""
    user, form = visitor(request), IgnoreForm(request.POST)
    row, status = _find(user, pk), 422
    if form.is_valid():
        try:
            drift_actions.ignore(
                row.pk, by=user, now=timezone.now(), **form.cleaned_data
            )
        except Refused as refusal:
            if refusal.sort is Sort.RIGHTS:
                raise PermissionDenied(refusal.message) from refusal
            status = add_refusal(form, refusal)
        else:
            messages.success(request, "It is left alone until then.")
            return redirect("cluster", row.tenancy.cluster.name)
    return with_refusal(_page(request, row, form, status=status), form)


@require_POST
def release_brake(request: HttpRequest, name: str) -> HttpResponse:
    """Let the repairs of a cluster go on."""
    found = get_object_or_404(Cluster, name=name)
    try:
        brake.release(found.pk, by=visitor(request), now=timezone.now())
    except Refused as refusal:
        tell_refusal(request, refusal)
    else:
        messages.success(request, "Repairs go on.")
    return redirect("cluster", name)


def _act(request: HttpRequest, pk: int, act: Act, done: str) -> HttpResponse:
    user = visitor(request)
    row = _find(user, pk)
    try:
        act(row.pk, by=user, now=timezone.now())
    except Refused as refusal:
        tell_refusal(request, refusal)
        return redirect("drift", row.pk)
    messages.success(request, done)
    return redirect("cluster", row.tenancy.cluster.name)


def _page(
    request: HttpRequest, row: Drift, form: IgnoreForm, *, status: int = 200
) -> HttpResponse:
    shown = drift_board.page(row, by=visitor(request), now=timezone.now())
    return render(request, "portal/drift.html", {**shown, "form": form}, status=status)


def _find(user: User, pk: int) -> Drift:
    rows = Drift.objects.visible_to(user).select_related(
        "tenancy__team", "tenancy__cluster"
    )
    row = rows.filter(pk=pk).first()
    if row is None:
        raise Http404
    return row
