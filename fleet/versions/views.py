"""The page of versions, which everybody reads who sees clusters."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from fleet.models import Cluster
from fleet.versions.page import page_of


@require_safe
def versions(request: HttpRequest) -> HttpResponse:
    """What runs on each kind of GPU of each cluster that is not written off, and in what clusters differ."""
    rows = Cluster.objects.not_written_off().prefetch_related("flavors")
    page = page_of(rows, now=timezone.now())
    return render(request, "fleet/versions.html", dict(page))
