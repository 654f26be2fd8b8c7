"""Every part of the design system in every state, where nobody works: in debug and in the demo."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.gallery import page as gallery


@require_safe
def styleguide(request: HttpRequest) -> HttpResponse:
    """The gallery; missing in production."""
    if not (settings.DEBUG or settings.DEMO):
        raise Http404
    return render(request, "gallery.html", gallery.samples())
