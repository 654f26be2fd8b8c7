"""Pages: what I am told, and what could not be delivered."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import STATUS, add_refusal, sent, visitor, with_refusal
from accounts.directory import backstage
from accounts.models import User
from accounts.roles import Permission
from notices import actions, choosing, presenting
from notices.forms import ChoiceForm
from notices.kinds import Way
from notices.models import Delivery
from notices.servers import mail_is_configured
from web.refusals import Refused

FORM_METHODS = ["GET", "HEAD", "POST"]
MOST_SHOWN = 100


@require_http_methods(FORM_METHODS)
def notice_settings(request: HttpRequest) -> HttpResponse:
    """What the person is told, how soon, and a test of it."""
    person = visitor(request)
    paces, hour = choosing.paces_of(person), choosing.hour_of(person)
    groups = choosing.groups_of(person)
    form = ChoiceForm(
        sent(request),
        kinds=[kind for kinds in groups.values() for kind in kinds],
        initial={"digest_hour": str(hour)},
    )
    status = 422
    if request.method == "POST" and form.is_valid():
        try:
            choosing.choose(person, paces=form.paces, hour=form.hour)
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            messages.success(request, "Saved. It holds from the next notice on.")
            return redirect("notice-settings")
    is_configured = mail_is_configured()
    context = {
        "form": form,
        "groups": presenting.choices(groups, paces),
        "mail_is_configured": is_configured,
        "tabs": presenting.settings_tabs(person, "notice-settings"),
        "address": person.email,
        "outcome": presenting.outcome(
            choosing.test_of(person, Way.EMAIL),
            to=person.email,
            is_stuck=not is_configured,
        ),
        "backstage": backstage.state(),
        "outcome_in_backstage": presenting.outcome(
            choosing.test_of(person, Way.BACKSTAGE), to="Backstage"
        ),
    }
    response = render(
        request, "notices/settings.html", context, status=status if form.errors else 200
    )
    return (
        with_refusal(response, form, detail="The choices were not saved.")
        if form.errors
        else response
    )


@require_POST
def test_mail(request: HttpRequest) -> HttpResponse:
    """Send the person a test; how it went is shown where they came from."""
    try:
        choosing.send_test(visitor(request), now=timezone.now())
    except Refused as refusal:
        return refused(request, refusal, "notice-settings")
    return redirect("notice-settings")


@require_safe
def deliveries(request: HttpRequest) -> HttpResponse:
    """Messages that were given up, the newest first."""
    person = lead(request)
    parked = Delivery.objects.parked().select_related(
        "notice__person", "notice__channel", "digest__person"
    )
    context = {
        "tabs": presenting.settings_tabs(person, "deliveries"),
        "rows": [
            presenting.given_up(delivery)
            for delivery in parked.order_by("-id")[:MOST_SHOWN]
        ],
        "waiting": Delivery.objects.filter(state=Delivery.State.WAITING).count(),
        "mail_is_configured": mail_is_configured(),
    }
    return render(request, "notices/deliveries.html", context)


@require_POST
def delivery_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Put one of them back on its way."""
    person = lead(request)
    delivery = get_object_or_404(Delivery, pk=pk)
    try:
        actions.send_again(delivery.pk, by=person, now=timezone.now())
    except Refused as refusal:
        return refused(request, refusal, "deliveries")
    messages.success(request, "It is on its way again.")
    return redirect("deliveries")


def lead(request: HttpRequest) -> User:
    """The visitor, when they manage notices; raises PermissionDenied for anybody else."""
    person = visitor(request)
    if not person.may(Permission.MANAGE_NOTICES):
        raise PermissionDenied
    return person


def refused(
    request: HttpRequest, refusal: Refused, back: str, *args: Any
) -> HttpResponse:
    """The page for a button that did nothing: why, and the way back."""
    context = {"message": refusal.message, "back": reverse(back, args=args)}
    response = render(
        request, "notices/refused.html", context, status=STATUS[refusal.sort]
    )
    response.refusal = {"detail": refusal.message, "code": refusal.code, "fields": {}}  # type: ignore[attr-defined]
    return response
