"""Help inside the product: the user guide, and what it leads to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.guide import (
    FOR_LEADS,
    FOR_TEAMS,
    PAGES,
    Group,
    address_of,
    page_of,
    picture_of,
)


class Others(TypedDict):
    """What somebody may want to do, and the documents about it."""

    title: str
    links: Sequence[dict[str, str]]


@require_safe
def guide(request: HttpRequest, name: str = "") -> HttpResponse:
    """One document with its sections, beside the names of the others."""
    if name not in PAGES or (not name and request.path != address_of("")):
        raise Http404
    context = {
        "page": page_of(name),
        "is_guide": not name,
        "others": list(_others(FOR_TEAMS, but=name)),
        "of_leads": list(_others(FOR_LEADS, but=name)),
    }
    return render(request, "portal/help.html", context)


def _others(groups: Mapping[str, Group], *, but: str) -> Iterator[Others]:
    """Each group with its documents, but for the one that is shown."""
    for title, names in groups.items():
        links = [
            {"title": page_of(name).title, "href": address_of(name)}
            for name in names
            if name != but
        ]
        yield {"title": title, "links": links}


@require_safe
def picture(request: HttpRequest, name: str) -> HttpResponse:
    """A picture of a document of the help."""
    try:
        return HttpResponse(picture_of(name), content_type="image/png")
    except KeyError:
        raise Http404 from None
