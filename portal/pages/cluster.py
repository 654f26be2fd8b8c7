"""One cluster: does it answer, what has it, who is on it."""

from typing import Any

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from accounts.visitors import visitor
from approvals.models import Request
from fleet.models import Cluster
from fleet.presenting import bar, health, trouble
from provisioning.models import Tenancy
from provisioning.words import state_words

MOST_TENANCIES = 100
COLUMNS = [
    "Team",
    "Space",
    "State",
    {"label": "GPUs", "kind": "number"},
    {"label": "Last looked", "kind": "end"},
]


@require_safe
def cluster(request: HttpRequest, name: str) -> HttpResponse:
    """A cluster's health, capacity and the tenancies that the person may see."""
    user = visitor(request)
    found = get_object_or_404(Cluster, name=name)
    asked = dict(
        Request.objects.waiting()
        .filter(flavor__cluster=found)
        .values_list("flavor")
        .annotate(gpus=Sum("gpus"))
    )
    flavors = list(found.flavors.all())
    rows = Tenancy.objects.visible_to(user).filter(cluster=found).select_related("team")[:MOST_TENANCIES]
    context = {
        "cluster": found, "badge": health(found), "trouble": trouble(found), "columns": COLUMNS,
        "bars": [{"bar": bar(flavor, asked=asked.get(flavor.pk, 0)), "flavor": flavor} for flavor in flavors],
        "rows": [_line(row) for row in rows], "may_manage": user.may(Permission.MANAGE_CLUSTERS),
        "facts": _facts(found), "now": timezone.now(),
    }  # fmt: skip
    return render(request, "fleet/cluster.html", context)


def _line(row: Tenancy) -> dict[str, Any]:
    tone, word = state_words(settled=row.is_settled, reason=row.ready["reason"])
    team = {
        "text": row.team.name,
        "href": reverse("team", args=[row.team.slug]),
        "sub": row.get_environment_display(),
    }
    gpus = sum(flavor["gpus"] for flavor in row.spec.get("flavors", []))
    return {"cells": [team, row.namespace, {"tone": tone, "word": word}, gpus, {"at": row.last_looked_at}]}


def _facts(found: Cluster) -> list[dict[str, Any]]:
    return [
        {"label": "Name", "copyable": found.name},
        {"label": "Purpose", "text": found.get_purpose_display()},
        {"label": "Region", "text": found.region},
        {"label": "Kubernetes", "text": found.version or "not known yet"},
        {"label": "Cohort", "text": found.cohort},
        {"label": "May borrow", "text": f"{found.borrow_percent} % of its own"},
        {"label": "Looked at", **({"at": found.looked_at} if found.looked_at else {"text": "not yet"})},
    ]
