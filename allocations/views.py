"""Giving GPUs back before their end, and a team's money by month."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_user import add_refusal, sent, visitor, with_refusal
from accounts.idempotency import new_key, once
from accounts.models import Team
from accounts.roles import Permission
from allocations import presenting
from allocations.budgets import actions as budget_actions
from allocations.budgets import months
from allocations.ends import actions as ends
from allocations.forms import BudgetForm, GiveBackForm
from allocations.models import Allocation, Budget
from ui.amounts import gpus, limits_words
from web.refusals import Refused

RELATED = ("team", "tenancy__cluster", "flavor__cluster")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def give_back(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows what giving back would change, POST gives back, once per form."""
    rows = (
        Allocation.objects.visible_to(visitor(request))
        .of_gpus()
        .select_related(*RELATED)
    )
    allocation = get_object_or_404(rows, pk=pk)
    is_member = allocation.team_id in visitor(request).team_ids
    if request.method != "POST":
        asked = {"gpus": request.GET.get("gpus") or str(allocation.gpus)}
        form = GiveBackForm(asked, is_member=is_member)
        return _effect_page(request, allocation, form)
    form, status = GiveBackForm(request.POST, is_member=is_member), 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_return(request, allocation, form))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_effect_page(request, allocation, form, status=status), form)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    """A team's money by month; platform leads set the limits."""
    user, now = visitor(request), timezone.now()
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    known = months.budgets_ahead(team, now=now)
    chosen = known[_chosen(request, list(known))]
    form, status = (
        BudgetForm(sent(request), months=list(known), initial=_limits_of(chosen)),
        200,
    )
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                month = date.fromisoformat(form.cleaned_data["month"])
                row = budget_actions.set_budget(
                    team, month=month, by=user, **form.limits
                )
                words = limits_words(
                    row.limit_usd, row.gpu_hours_limit, row.soft_percent
                )
                messages.success(request, f"The limit for {month:%B %Y} is {words}.")
                return HttpResponseRedirect(reverse("team-budget", args=[slug]))
            except Refused as refusal:
                status = add_refusal(form, refusal)
    last = months.last_month(team, now=now)
    over = [last] if last else []
    context = {
        "team": team,
        "form": form,
        "months": months.month_lines([*over, *known.values()], now=now),
        "now": months.this_month(team, now=now, budget=next(iter(known.values()))),
        "chosen": chosen.month,
        "may_set": user.may(Permission.MANAGE_BUDGETS),
    }
    response = render(request, "allocations/budget.html", context, status=status)
    return with_refusal(response, form) if status != 200 else response


@never_cache
@require_safe
def ledger(request: HttpRequest, slug: str, month: str) -> HttpResponse:
    """A month of a team, hold by hold."""
    team = get_object_or_404(Team.objects.visible_to(visitor(request)), slug=slug)
    first = months.month_named(month)
    if first is None:
        raise Http404
    budget = months.budget_of(team, first)
    context = {
        "team": team,
        "budget": budget,
        "columns": months.COLUMNS,
        "hours_note": "no limit"
        if budget.gpu_hours_limit is None
        else f"of {budget.gpu_hours_limit:,.0f}",
        "ledger": months.ledger_of(budget, request.GET.dict()),
    }
    return render(request, "allocations/ledger.html", context)


def _chosen(request: HttpRequest, known: Sequence[date]) -> date:
    """The month whose limits the form is about: the one sent, else the one in the address, else the current one."""
    said = request.POST.get("month", "")[:7] or request.GET.get("month", "")
    month = months.month_named(said)
    return month if month is not None and month in known else known[0]


def _limits_of(row: Budget) -> dict[str, Any]:
    return {
        "month": row.month.isoformat(),
        "limit_usd": row.limit_usd,
        "gpu_hours_limit": row.gpu_hours_limit,
        "soft_percent": row.soft_percent,
    }


def _return(request: HttpRequest, allocation: Allocation, form: GiveBackForm) -> str:
    user, said = visitor(request), form.cleaned_data

    def action() -> str:
        ends.give_back(
            allocation.pk,
            gpus=said["gpus"],
            by=user,
            now=timezone.now(),
            reason=said.get("reason", ""),
        )
        return reverse("team", args=[allocation.team.slug])

    body = {"gpus": str(said["gpus"]), "reason": said.get("reason", "")}
    location = once(
        user,
        route=f"page:give-back:{allocation.pk}",
        key=said["token"] or new_key(),
        body=body,
        action=action,
    )
    product = allocation.flavor.kind if allocation.flavor is not None else "GPU"
    messages.success(request, f"{gpus(said['gpus'], product)} went back to the pool.")
    return location


def _effect_page(
    request: HttpRequest,
    allocation: Allocation,
    form: GiveBackForm,
    *,
    status: int = 200,
) -> HttpResponse:
    effect, now = None, timezone.now()
    if form.is_valid() and allocation.ended_at is None:
        count = form.cleaned_data["gpus"]
        if lacking := ends.why_not_held(allocation, count, now=now):
            form.add_error("gpus", lacking)
        else:
            effect = presenting.effect(allocation, count, now=now)
    context = {
        "allocation": allocation,
        "form": form,
        "effect": effect,
        "token": new_key(),
    }
    context["may_give_back"] = ends.may_give_back(visitor(request), allocation.team_id)
    return render(request, "allocations/give_back.html", context, status=status)
