"""Pages of capacity reservations: the list, one of them, giving machines back, and what is orphaned."""

from functools import partial

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import (
    STATUS,
    add_refusal,
    tell_refusal,
    visitor,
    visitor_whom,
    with_refusal,
)
from accounts.idempotency import new_key, once
from accounts.roles import Permission
from allocations.ends import actions as ends
from allocations.presenting import effect_of_machines
from capacity.connection import is_connected
from capacity.models import Orphan, Reservation
from capacity.orphans import actions as orphan_actions
from capacity.orphans.comparing import OrphanKind
from capacity.reservations import actions as reservations_of_azure
from insights.reservations import listing, page
from insights.reservations.forms import MachinesForm
from insights.reservations.gathering import grants_of, orphan_prices, usd_per_hour
from insights.reservations.presenting import orphan_standing, place
from ui.amounts import machines
from ui.controls import is_filtered
from web.refusals import Refused


@require_safe
def reservations(request: HttpRequest) -> HttpResponse:
    """Every reservation that the person may see, and for platform leads what is orphaned."""
    user, now, ask = (
        visitor(request),
        timezone.now(),
        reverse("request-new", args=["reservation"]),
    )
    form, rows = listing.filtered(request)
    found = listing.page_of(rows, request.GET.dict())
    context: dict[str, object] = {
        "filter": form,
        "is_filtered": is_filtered(form),
        "columns": listing.COLUMNS,
        "rows": listing.lines(found.rows, now=now),
        "has_any": bool(found.rows) or Reservation.objects.visible_to(user).exists(),
        "page": found,
        "is_connected": is_connected(),
        "ask": ask,
        "first": {"label": "Reserve capacity", "href": ask},
        "clear": {"label": "Clear the filter", "href": reverse("reservations")},
        "may_manage": user.may(Permission.MANAGE_CLUSTERS),
    }
    if context["may_manage"]:
        context |= listing.orphans(orphan_prices())
    return render(request, "insights/reservations.html", context)


@require_safe
def reservation(request: HttpRequest, pk: int) -> HttpResponse:
    """One reservation: how it stands, what it costs, who uses it, and what to do about it."""
    row = _find(request, pk)
    context = page.context(row, by=visitor(request), now=timezone.now())
    return render(request, "insights/reservation.html", context)


@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a worker try it now."""
    row = _find(request, pk)
    try:
        reservations_of_azure.try_again(row.pk, by=visitor(request), now=timezone.now())
    except Refused as refusal:
        tell_refusal(request, refusal)
    else:
        messages.success(request, "A worker tries it now.")
    return redirect("reservation", row.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def give_back(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows what giving machines back would change, POST gives them back, once per form."""
    row, now = _find(request, pk), timezone.now()
    choices = page.give_back_choices(grants_of(row), now)
    form_of = partial(
        MachinesForm,
        grants=choices,
        is_member=row.team_id in visitor(request).team_ids,
    )
    if request.method != "POST":
        usual = {"grant": str(choices[0][0].pk) if choices else "", "machines": "1"}
        asked = {name: request.GET.get(name) or value for name, value in usual.items()}
        return _give_back_page(request, row, form_of(asked))
    form, status = form_of(request.POST), 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_return(request, row, form))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_give_back_page(request, row, form, status=status), form)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def orphan(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows a reservation of ours that is orphaned, POST has a worker release it."""
    user = visitor_whom(request, orphan_actions.require_lead)
    row, refusal = get_object_or_404(Orphan, pk=pk), None
    if row.kind != OrphanKind.ORPHANED:
        raise Http404
    if request.method == "POST":
        try:
            orphan_actions.ask_release(row.pk, by=user, now=timezone.now())
        except Refused as refused:
            refusal = refused
        else:
            messages.success(request, "A worker releases it now.")
            return redirect(f"{reverse('reservations')}#orphans")
    cost = usd_per_hour(row, orphan_prices())
    context = {
        "orphan": row,
        "standing": orphan_standing(row),
        "refusal": refusal.message if refusal else "",
        "in_use": orphan_actions.in_use(row.associated) if row.associated else "",
        "facts": [
            {"label": "Machines", "text": f"{row.machines}, {row.used} in use"},
            {"label": "Where", "text": place(row)},
            {"label": "Cost", "money": cost, "period": "an hour"}
            if cost is not None
            else {"label": "Cost", "text": "no price"},
            {"label": "Tagged for", "text": row.tagged_team},
            {"label": "Found", "at": row.first_seen_at},
            {"label": "Read from Azure", "at": row.seen_at},
            {"label": "Subscription", "copyable": row.subscription_id},
            {"label": "Resource group", "copyable": row.resource_group},
            {"label": "Reservation group", "copyable": row.group},
            *([{"label": "Reservation", "copyable": row.name}] if row.name else []),
        ],
    }
    return render(
        request,
        "insights/orphan.html",
        context,
        status=STATUS[refusal.sort] if refusal else 200,
    )


def _find(request: HttpRequest, pk: int) -> Reservation:
    rows = Reservation.objects.visible_to(visitor(request)).select_related(
        "team", "flavor__cluster"
    )
    return get_object_or_404(rows, pk=pk)


def _return(request: HttpRequest, row: Reservation, form: MachinesForm) -> str:
    user, count, grant = visitor(request), form.cleaned_data["machines"], form.chosen
    reason = form.cleaned_data.get("reason", "")

    def action() -> str:
        ends.give_back_machines(
            grant.pk, count, by=user, now=timezone.now(), reason=reason
        )
        return reverse("reservation", args=[row.pk])

    location = once(
        user,
        route=f"page:give-machines-back:{row.pk}",
        key=form.cleaned_data["token"] or new_key(),
        body={"grant": str(grant.pk), "machines": str(count), "reason": reason},
        action=action,
    )
    goes = "goes" if count == 1 else "go"
    messages.success(
        request,
        f"{machines(count)} {goes} back: the portal asks Azure for less within seconds.",
    )
    return location


def _give_back_page(
    request: HttpRequest, row: Reservation, form: MachinesForm, *, status: int = 200
) -> HttpResponse:
    effect, now = None, timezone.now()
    if form.is_valid():
        count = form.cleaned_data["machines"]
        if lacking := ends.why_not_held(form.chosen, count, now=now):
            form.add_error("machines", lacking)
        else:
            effect = effect_of_machines(form.chosen, count, now=now)
    context = {
        "reservation": row,
        "form": form,
        "effect": effect,
        "token": new_key(),
        "has_grants": bool(form.fields["grant"].choices),  # type: ignore[attr-defined]
        "may_give_back": ends.may_give_back(visitor(request), row.team_id),
    }
    return render(
        request, "insights/reservation_give_back.html", context, status=status
    )
