"""How far the policy trusts a team: its tier, set by platform leads."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts import actions
from accounts.current_user import add_refusal, sent, visitor, with_refusal
from accounts.forms import TierForm
from accounts.models import Team
from accounts.roles import Permission
from web.refusals import Refused

TIERS = (
    {"value": "standard", "title": "Standard", "text": "The policy's usual limits."},
    {
        "value": "trusted",
        "title": "Trusted",
        "text": "More is automatic, where the policy says so.",
    },
    {
        "value": "restricted",
        "title": "Restricted",
        "text": "People decide more, where the policy says so.",
    },
)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tier(request: HttpRequest, slug: str) -> HttpResponse:
    """The team's tier and what the tiers mean; platform leads set it."""
    user = visitor(request)
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    form, status = TierForm(sent(request), initial={"tier": team.tier}), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                actions.set_tier(
                    team, form.cleaned_data["tier"], by=user, now=timezone.now()
                )
                messages.success(
                    request, f"{team.name} is {team.get_tier_display().lower()} now."
                )
                return redirect("team", team.slug)
            except Refused as refusal:
                status = add_refusal(form, refusal)
    context = {
        "team": team,
        "form": form,
        "tiers": TIERS,
        "may_set": user.may(Permission.MANAGE_TIERS),
    }
    response = render(request, "accounts/tier.html", context, status=status)
    return with_refusal(response, form) if status != 200 else response
