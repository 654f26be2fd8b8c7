"""All pages, as somebody of a role finds them in the world of the permission matrix."""

from collections.abc import Iterator

from django.db import transaction

from tests.pages import Element, parsed
from tests.portal.permission_matrix import Prober, routes, things


def pages(prober: Prober, role: str) -> Iterator[tuple[str, Element]]:
    """Every page that this person may open, of their own team and of another."""
    seen = set()
    for route in routes():
        if route.startswith(("api/", "sign-", "styleguide")):
            continue
        for thing in things(route):
            path = "/" + prober.path(route, role, thing)
            if path in seen or thing == "missing":
                continue
            seen.add(path)
            with transaction.atomic():
                answer = prober.pages[role].get(path)
                transaction.set_rollback(True)
            if answer.status_code == 200 and answer["Content-Type"].startswith(
                "text/html"
            ):
                yield path, parsed(answer.content.decode())
