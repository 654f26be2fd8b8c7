"""What a team's pods can reach on a cluster, and who reaches them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.roles import Permission
from provisioning import reach as reaching
from provisioning.models import Tenancy


@require_safe
def reach(request: HttpRequest, pk: int) -> HttpResponse:
    """The ways out and in of one tenancy, for its team and whoever may see it."""
    user = visitor(request)
    rows = Tenancy.objects.visible_to(user).select_related("team", "cluster", "project")
    tenancy = get_object_or_404(rows, pk=pk)
    spec = tenancy.desired if tenancy.generation else None
    context = {
        "tenancy": tenancy,
        "outward": reaching.ways_out(spec) if spec else [],
        "inward": reaching.ways_in(spec) if spec else [],
        "closed": reaching.CLOSED,
        "may_change": user.may(Permission.MANAGE_CLUSTERS),
    }
    return render(request, "portal/reach.html", context)
