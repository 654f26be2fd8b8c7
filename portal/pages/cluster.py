"""One cluster: does it answer, what has it, who is on it."""

from datetime import datetime

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.roles import Permission
from allocations.use import measuring as use
from approvals.models import Request
from fleet.models import Cluster
from fleet.presenting import bar, health, trouble
from portal.pages import drift_board
from provisioning.git.commits import newest_of
from provisioning.models import Tenancy
from provisioning.stages import Stage
from provisioning.words import state_words
from ui.parts import Cell, Columns, Fact, Row

MOST_TENANCIES = 100
COLUMNS: Columns = [
    "Team",
    "Namespace",
    "State",
    {"label": "GPUs", "kind": "number"},
    {"label": "Last looked", "kind": "end"},
]


@require_safe
def cluster(request: HttpRequest, name: str) -> HttpResponse:
    """A cluster's health, capacity and the tenancies that the person may see."""
    user = visitor(request)
    found = get_object_or_404(Cluster.objects.counted(), name=name)
    asked = dict(
        Request.objects.waiting()
        .filter(flavor__cluster=found, renews=None)
        .values_list("flavor")
        .annotate(gpus=Sum("gpus"))
    )
    manages = user.may(Permission.MANAGE_CLUSTERS)
    flavors, busy = (
        list(found.flavors.all()),
        use.busy_of_cluster(found.pk, now=timezone.now()),
    )
    rows = (
        Tenancy.objects.present()
        .visible_to(user)
        .filter(cluster=found)
        .select_related("team")[:MOST_TENANCIES]
    )
    context = {
        "cluster": found,
        "badge": health(found),
        "trouble": trouble(found, manages=manages),
        "announced": found.announces(timezone.now()),
        "columns": COLUMNS,
        "bars": [
            {
                "bar": bar(
                    flavor, asked=asked.get(flavor.pk, 0), busy=busy.get(flavor.pk)
                ),
                "flavor": flavor,
            }
            for flavor in flavors
        ],
        "rows": [_line(row) for row in rows],
        "may_manage": manages,
        "facts": _facts(found),
        "now": timezone.now(),
        "drifts": drift_board.panel(found, by=user, now=timezone.now()),
    }
    return render(request, "fleet/cluster.html", context)


def _line(row: Tenancy) -> Row:
    tone, word = state_words(settled=row.is_settled, reason=row.ready["reason"])
    if row.stage != Stage.HERE:
        # What stands of a place that is left is nobody's question.
        tone, word = Stage(row.stage).tone, Stage(row.stage).words
    team: Cell = {
        "text": row.team.name,
        "href": reverse("team", args=[row.team.slug]),
        "sub": row.get_environment_display(),
    }
    gpus = sum(flavor["gpus"] for flavor in row.spec.get("flavors", []))
    return {
        "cells": [
            team,
            row.namespace,
            {"tone": tone, "word": word},
            gpus,
            {"at": row.last_looked_at},
        ]
    }


def _facts(found: Cluster) -> list[Fact]:
    unknown = "not known yet" if found.is_observed else "not observed"
    return [
        {"label": "Name", "copyable": found.name},
        {"label": "Purpose", "text": found.get_purpose_display()},
        {"label": "Region", "text": found.region},
        {"label": "Kubernetes", "text": found.version or unknown},
        {
            "label": f"Release of {found.get_queueing_display()}",
            "text": found.queue_version or unknown,
        },
        *(Fact(label=part["part"], text=part["words"]) for part in found.parts),
        {"label": "Namespaces", "text": _namespaces(found)},
        {"label": "Changed by others", "text": _drifted(found)},
        {
            "label": "Writes",
            "text": f"{found.writes_per_second} a second, {found.most_at_once} teams at once",
        },
        *([] if found.has_volcano else [Fact(label="Cohort", text=found.cohort)]),
        {"label": "Teams may borrow", "text": _borrowing(found)},
        {"label": "Pods go outside to", "text": _outside(found)},
        *_delivery(found),
        _since("Last contact", found.last_contact_at),
        _since("Looked at", found.looked_at),
        *(
            [_since("Written off", found.written_off_at)]
            if found.written_off_at
            else []
        ),
    ]


def _since(label: str, at: datetime | None) -> Fact:
    return {"label": label, "at": at} if at else {"label": label, "text": "not yet"}


def _borrowing(found: Cluster) -> str:
    return (
        f"up to {found.borrow_percent} % of what they hold"
        if found.borrow_percent
        else "nothing"
    )


def _outside(found: Cluster) -> str:
    """To how many places teams' pods may go, and whether those may be names."""
    ways = f"{len(found.egress) or 'no'} place{'' if len(found.egress) == 1 else 's'}"
    if found.takes_names:
        return f"{ways}; DNS names are possible, as its network is Cilium"
    if found.outside_by_name == Cluster.ByName.AUTO and found.has_cilium is None:
        return f"{ways}; whether DNS names are possible is not known yet"
    return f"{ways}; DNS names are not possible"


def _as_of_last_contact(found: Cluster, words: str) -> str:
    """What is known of the cluster's objects; while it is away nobody can look."""
    if not found.is_away:
        return words
    return (
        f"{words} when it last answered" if found.last_contact_at else "not known yet"
    )


def _namespaces(found: Cluster) -> str:
    here, wrong = (
        getattr(found, name) for name in ("tenancies_here", "tenancies_not_true")
    )
    if not here:
        return "none any more" if found.written_off_at else "none yet"
    if wrong:
        return f"{here}, {wrong} of them not as wanted"
    if not found.is_observed:
        return f"{here}, all committed"
    wanted = (
        "as wanted but for what others changed"
        if _number_drifted(found)
        else "all as wanted"
    )
    return f"{here}, {_as_of_last_contact(found, wanted)}"


def _drifted(found: Cluster) -> str:
    if not found.is_observed:
        return "not observed"
    number = _number_drifted(found)
    words = f"{number} object{'' if number == 1 else 's'}" if number else "nothing"
    return _as_of_last_contact(found, words)


def _number_drifted(found: Cluster) -> int:
    """Objects changed by others about which nothing was decided, as `Cluster.objects.counted()` has it."""
    number: int = getattr(found, "drifted")  # noqa: B009
    return number


def _delivery(found: Cluster) -> list[Fact]:
    """How what is wanted gets there: for a repository its address, its branch and what was committed last."""
    if found.delivery != Cluster.Delivery.GIT:
        return [{"label": "Delivered by", "text": found.get_delivery_display()}]
    newest = newest_of(found)
    last: list[Fact] = [{"label": "Last commit", "text": "nothing yet"}]
    if newest is not None:
        last = [
            {"label": "Last commit", "copyable": newest.short},
            {"label": "Committed", "at": newest.at},
        ]
    return [
        {
            "label": "Delivered by",
            "text": f"Git: {found.get_git_way_display().lower()}",
        },
        {"label": "Repository", "text": found.git_url},
        {"label": "Branch", "text": found.git_branch},
        *last,
    ]
