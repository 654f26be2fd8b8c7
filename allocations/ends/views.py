"""Many ends at once: what is due, and the two answers of a platform lead."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.current_user import STATUS, visitor
from accounts.roles import Permission
from allocations.ends import sweep as ending
from allocations.models import Allocation, Brake
from web.refusals import Refused

MOST_SHOWN = 50
COLUMNS = ["GPUs", "Team", "Cluster", {"label": "Due since", "kind": "end"}]
WHEN_IT_HOLDS_BACK = (
    "If more than 10 holdings and 5 % of all would end at one moment, they wait here "
    "until a platform lead says that the clock is right."
)
ANSWERS = {"confirm": ending.confirm, "dismiss": ending.dismiss}
SAID = {
    "confirm": "They end now, one after the other.",
    "dismiss": "Nothing ends by that clock. It is looked at again at the next sweep.",
}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def held_back(request: HttpRequest) -> HttpResponse:
    """GET shows what would end at once, POST says that it may or that the clock was wrong."""
    user, now = visitor(request), timezone.now()
    if not user.may(Permission.MANAGE_BUDGETS):
        raise PermissionDenied("Platform leads let many holdings end at once.")
    refusal, status = "", 200
    if request.method == "POST":
        do, brake = request.POST.get("do", ""), request.POST.get("brake", "")
        if do not in ANSWERS or not (
            brake.isascii() and brake.isdigit() and len(brake) < 10
        ):
            refusal, status = "Choose one of the two answers.", 422
        else:
            try:
                ANSWERS[do](int(brake), by=user, now=now)
                messages.success(request, SAID[do])
                return HttpResponseRedirect(reverse("ends-held-back"))
            except Refused as refused:
                refusal, status = refused.message, STATUS[refused.sort]
    return render(
        request, "allocations/held_back.html", _context(refusal), status=status
    )


def _context(refusal: str) -> dict[str, object]:
    brake = Brake.objects.open().first()
    due = Allocation.objects.over(brake.clock) if brake else Allocation.objects.none()
    rows = due.described().order_by("kept_until")[:MOST_SHOWN]
    return {
        "brake": brake,
        "when_it_holds_back": WHEN_IT_HOLDS_BACK,
        "refusal": refusal,
        "count": due.count(),
        "columns": COLUMNS,
        "rows": [
            {
                "cells": [
                    row.what,
                    {
                        "text": row.team.name,
                        "href": reverse("team", args=[row.team.slug]),
                    },
                    row.where,
                    row.kept_until,
                ]
            }
            for row in rows
        ],
        "earlier": Brake.objects.exclude(answer="").select_related("answered_by")[:10],
    }
