"""How a team uses its place on a cluster, as a page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from provisioning.clusters.access import use_of
from provisioning.models import Tenancy


@require_safe
def use_it(request: HttpRequest, pk: int) -> HttpResponse:
    """Sign in, namespace, queue, nodes, a first job, logs and dashboards."""
    rows = Tenancy.objects.visible_to(visitor(request)).select_related(
        "team", "cluster"
    )
    tenancy = get_object_or_404(rows, pk=pk)
    context = {
        "tenancy": tenancy,
        "team": tenancy.team,
        "cluster": tenancy.cluster,
        "use": use_of(tenancy),
    }
    return render(request, "onboarding/use.html", context)
