"""The page on which platform leads set a team's share of a cluster and its distance to others."""

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.current_user import add_refusal, sent, visitor, with_refusal
from accounts.roles import Permission
from approvals.shares.actions import set_shares
from provisioning.desired.priorities import PRIORITIES
from provisioning.desired.spec import LARGEST_WEIGHT
from provisioning.models import Isolation, Tenancy
from web.edits import KeepsOthersEdits
from web.fields import StrictForm, WholeNumberField
from web.refusals import Refused


class SharesForm(KeepsOthersEdits, StrictForm):
    """A weight, a level and the highest priority."""

    weight = WholeNumberField(
        label="Weight",
        most=LARGEST_WEIGHT,
        of="shares",
        help_text="When several teams want more than they hold, idle GPUs go round by weight; 1 unless told otherwise.",
    )
    isolation = forms.ChoiceField(label="Isolation", choices=Isolation.choices)
    priority_limit = forms.ChoiceField(
        label="Highest priority",
        required=False,
        choices=[
            ("", "As the environment and the cluster are for"),
            *((name, name) for name in PRIORITIES),
        ],
        help_text="Pods of a higher priority are refused in the team’s namespace.",
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def shares(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the share and the isolation of a tenancy, or set them."""
    user = visitor(request)
    rows = Tenancy.objects.visible_to(user).select_related("team", "cluster")
    tenancy = get_object_or_404(rows, pk=pk)
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise PermissionDenied
    initial = {
        name: getattr(tenancy, name)
        for name in ("weight", "isolation", "priority_limit")
    }
    form = SharesForm(sent(request), initial=initial)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                set_shares(tenancy.pk, by=user, now=timezone.now(), **form.cleaned_data)
            except Refused as refusal:
                status = add_refusal(form, refusal)
            else:
                messages.success(
                    request,
                    f"Saved. {tenancy.team.name}’s queue follows within seconds.",
                )
                return redirect("team", tenancy.team.slug)
    context: dict[str, object] = {"form": form, "tenancy": tenancy}
    response = render(request, "approvals/shares.html", context, status=status)
    return with_refusal(response, form) if form.errors else response
