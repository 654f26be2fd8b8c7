"""What an address answers to a method that it does not take: the page that it belongs to, or a page that says so."""

import re
from collections.abc import Callable, Iterator

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse

from accounts.models import User
from provisioning.models import Tenancy

# Programs ask these and read the status.
PLAIN = re.compile(
    r"^/(api/|static/|healthz$|readyz$|workz$|metrics$|events$|session$)"
)
SAID = "Nothing was done: that address only takes what a button sends. This is the page it belongs to."
# What is done to a place of a team is done on a page of the team.
OF_A_PLACE = {"look-again": "onboarding", "tenancy-protection": "leaving"}


class WrongMethodMiddleware:
    """Lead whoever opens the address of a button back to its page; anything else is a page inside the frame.

    A link to such an address comes from a history, from another tab or from a page that was loaded again.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code != 405 or PLAIN.match(request.path):
            return response
        if request.method in ("GET", "HEAD"):
            return self._lead_back(request)
        page = render(request, "errors/405.html", status=405)
        page["Allow"] = response.get("Allow", "")
        return page

    def _lead_back(self, request: HttpRequest) -> HttpResponse:
        if not isinstance(request.user, User):
            return HttpResponseRedirect(reverse(settings.LOGIN_URL))
        messages.info(request, SAID)
        return HttpResponseRedirect(page_of(request.path, request.user))


def page_of(path: str, user: User) -> str:
    """The page that the address of a button belongs to: the nearest one above it, home when there is none."""
    match = resolve(path)
    if match.url_name in OF_A_PLACE:
        place = (
            Tenancy.objects.visible_to(user)
            .filter(pk=match.kwargs["pk"])
            .select_related("team")
            .first()
        )
        return (
            reverse(OF_A_PLACE[match.url_name], args=[place.team.slug])
            if place
            else reverse("teams")
        )
    return next(filter(_is_there, _above(path)), "/")


def _above(path: str) -> Iterator[str]:
    """`/tokens/ab/revoke` → `/tokens/ab`, `/tokens/ab/`, `/tokens`, `/tokens/`."""
    parts = path.strip("/").split("/")
    for length in range(len(parts) - 1, 0, -1):
        parent = "/" + "/".join(parts[:length])
        yield from (parent, f"{parent}/")


def _is_there(path: str) -> bool:
    try:
        name = resolve(path).url_name or ""
    except Resolver404:
        return False
    # A preview is a part of a page, and takes what is typed there.
    return not name.endswith("preview")
