"""The page for asking, its answer while typing, and sending it."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.idempotency import new_key, once
from approvals.requests import asking
from approvals.requests.actions import submit
from approvals.requests.forms import AskForm, Offers
from approvals.requests.no_gpus_yet import lacks
from web.fields import INPUT
from web.refusals import BadInput, Refused

ROUTE = "page:request-new"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def request_new(request: HttpRequest) -> HttpResponse:
    """Ask: GET shows form and answer, POST asks; with `check` or `quick` it only answers, for whoever has no script."""
    user, now = visitor(request), timezone.now()
    offers = Offers.of(user)
    asked = request.POST if request.method == "POST" else request.GET
    lacking = lacks(user, offers, slug=asked.get("team", ""))
    if lacking is not None:
        status = 422 if request.method == "POST" else 200
        return render(request, "approvals/request_new.html", {"lacking": lacking}, status=status)
    points = asking.starting_points(user, offers, now, team=asked.get("team", ""))
    if request.method != "POST":
        return _page(request, AskForm(asking.values_from(request.GET, points), offers=offers), points)
    form = AskForm(_data(request), offers=offers)
    if "check" in request.POST or "quick" in request.POST:
        return _page(request, form, points)
    status = 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_send(form, request))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, form, points, status=status), form)


@never_cache
@require_POST
def request_preview(request: HttpRequest) -> HttpResponse:
    """The answer to the form as it stands; writes nothing."""
    form = AskForm(_data(request), offers=Offers.of(visitor(request)))
    context = asking.answer_context(form, person=visitor(request), now=timezone.now())
    context |= {"form": form, "is_preview": True, "quick": "quick" in request.POST}
    return render(request, "approvals/preview.html", context)


def _send(form: AskForm, request: HttpRequest) -> str:
    """Ask, once per form; returns where the request is. Raises Refused."""
    user, said, wanted = visitor(request), form.cleaned_data, form.wanted
    if said["answered"] and said["answered"] != asking.about(wanted):
        raise BadInput(
            "You changed it after this answer. Here is the new one: look, then ask.", code="answer_is_old"
        )
    body = {name: str(said[name]) for name in asking.FIELDS}

    def action() -> str:
        return reverse("request", args=[submit(wanted, by=user, now=timezone.now()).pk])

    return once(user, route=ROUTE, key=said["token"] or new_key(), body=body, action=action)


def _data(request: HttpRequest) -> QueryDict:
    """What was sent, with the end that a quick choice stands for."""
    data = request.POST.copy()
    if "quick" in data:
        data["until"] = asking.quick_until(str(data["quick"]), timezone.now()).strftime(INPUT)
    return data


def _page(
    request: HttpRequest, form: AskForm, points: list[dict[str, Any]], *, status: int = 200
) -> HttpResponse:
    context = asking.answer_context(form, person=visitor(request), now=timezone.now())
    chosen = {name: form.data.get(name, "") for name in ("team", "flavor", "gpus", "until")}
    for point in points:
        point["current"] = chosen.items() <= point["values"].items()
    context |= {"form": form, "points": points, "quick_choices": asking.QUICK, "token": new_key()}
    return render(request, "approvals/request_new.html", context, status=status)
