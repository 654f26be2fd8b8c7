"""Giving GPUs back before their end, and a team's money by month."""

from datetime import date

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.idempotency import new_key, once
from accounts.models import Team
from accounts.refusals import Refused
from accounts.roles import Permission
from accounts.visitors import add_refusal, sent, visitor, with_refusal
from allocations import actions, presenting
from allocations.forms import BudgetForm, GiveBackForm
from allocations.models import Allocation

RELATED = ("team", "tenancy__cluster", "flavor__cluster")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def give_back(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows what giving back would change, POST gives back, once per form."""
    rows = Allocation.objects.visible_to(visitor(request)).select_related(*RELATED)
    allocation = get_object_or_404(rows, pk=pk)
    if request.method != "POST":
        count = request.GET.get("gpus") or str(allocation.gpus)
        return _effect_page(request, allocation, GiveBackForm({"gpus": count}, label_suffix=""))
    form, status = GiveBackForm(request.POST, label_suffix=""), 422
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
    months = presenting.months_from(now)
    form, status = BudgetForm(sent(request), months=months), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                said = form.cleaned_data
                month = date.fromisoformat(said["month"])
                actions.set_budget(team, month=month, limit_usd=said["limit_usd"], by=user)
                messages.success(request, f"The limit for {month:%B %Y} is ${said['limit_usd']:,.2f}.")
                return HttpResponseRedirect(reverse("team-budget", args=[slug]))
            except Refused as refusal:
                status = add_refusal(form, refusal)
    context = {
        "team": team,
        "form": form,
        "months": presenting.by_month(team, months),
        "may_set": user.may(Permission.MANAGE_BUDGETS),
    }
    response = render(request, "allocations/budget.html", context, status=status)
    return with_refusal(response, form) if status != 200 else response


def _return(request: HttpRequest, allocation: Allocation, form: GiveBackForm) -> str:
    user, said = visitor(request), form.cleaned_data

    def action() -> str:
        actions.give_back(allocation.pk, gpus=said["gpus"], by=user, now=timezone.now())
        return reverse("team", args=[allocation.team.slug])

    body = {"gpus": str(said["gpus"])}
    location = once(
        user,
        route=f"page:give-back:{allocation.pk}",
        key=said["token"] or new_key(),
        body=body,
        action=action,
    )
    messages.success(request, f"{said['gpus']} × {allocation.flavor.product} went back to the pool.")
    return location


def _effect_page(
    request: HttpRequest, allocation: Allocation, form: GiveBackForm, *, status: int = 200
) -> HttpResponse:
    count = form.cleaned_data["gpus"] if form.is_valid() else 0
    fits = allocation.ended_at is None and 1 <= count <= allocation.gpus
    effect = presenting.effect(allocation, count, now=timezone.now()) if fits else None
    context = {"allocation": allocation, "form": form, "effect": effect, "token": new_key()}
    return render(request, "allocations/give_back.html", context, status=status)
