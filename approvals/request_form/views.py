"""The page for asking for an offering, the answer while filling it in, and sending it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from django.core.exceptions import ValidationError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    QueryDict,
)
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.idempotency import led_to, new_key, once
from approvals.request_form import answer_panel
from approvals.request_form.answer_panel import NO_REQUEST
from approvals.request_form.form import RequestForm, starts
from approvals.request_form.likely_team import last_team
from approvals.request_form.not_yet import lacks
from approvals.request_form.offers import Offers
from approvals.request_form.quick_ends import quick_end, quick_ends
from approvals.request_form.starting_points import Point, starting_points, usual_of
from approvals.requests.actions import submit_within
from catalogue import page as catalogue_page
from catalogue.models import OfferingSetting, follows, setting_of
from catalogue.offering import Offering
from catalogue.offerings import OFFERINGS
from ui.parts import Lack
from web.fields import INPUT, MomentField
from web.refusals import BadInput, Refused

ROUTE = "page:request-new"


class OfferingWords(TypedDict):
    """The offering that is asked for, with what follows on a yes."""

    offering: Offering
    after: Sequence[str]
    ask_label: str


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def request_new(request: HttpRequest, key: str) -> HttpResponse:
    """Ask for an offering: GET shows form and answer, POST asks; with `check` or `quick` it only answers."""
    user, now, offering = visitor(request), timezone.now(), _offering(key)
    setting = setting_of(offering)
    if not setting.enabled:
        return render(
            request, "approvals/offering_off.html", {"offering": offering}, status=409
        )
    sent = request.POST if request.method == "POST" else request.GET
    team = str(sent.get("team", ""))
    likely = team or ("" if request.method == "POST" else last_team(user))
    offers = Offers.of(user) if offering.on_cluster else None
    lacking = lacks(user, offers, slug=team)
    if lacking is not None:
        context = {**_words(offering), "lacking": lacking}
        status = 422 if request.method == "POST" else 200
        return render(request, "approvals/request_new.html", context, status=status)

    def points() -> list[Point]:
        # What was granted shows no form again, so that none are made for it.
        return (
            starting_points(user, offers, now, team=likely)
            if offers and offering.key == "gpus"
            else []
        )

    if request.method != "POST":
        begun = points()
        form = _begun(request, offering, setting, begun, team=likely)
        return _page(request, form, begun)
    only_answers = "check" in request.POST or "quick" in request.POST
    form = _form(request, offering, setting, _data(request), follows_team=only_answers)
    if only_answers:
        return _page(request, form, points())
    status = 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_send(form, request))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, form, points(), status=status), form)


@never_cache
@require_POST
def request_preview(request: HttpRequest, key: str) -> HttpResponse:
    """The answer to the form as it stands; writes nothing."""
    offering = _offering(key)
    form = _form(
        request, offering, setting_of(offering), _data(request), follows_team=True
    )
    context = _context(request, form) | {
        "is_preview": True,
        "quick": "quick" in request.POST,
        "changed_fields": [form[name] for name in form.dependent],
    }
    return render(request, "approvals/preview.html", context)


def _offering(key: str) -> Offering:
    if key not in OFFERINGS:
        raise Http404
    return OFFERINGS[key]


def _form(
    request: HttpRequest,
    offering: Offering,
    setting: OfferingSetting,
    data: Any,
    *,
    follows_team: bool = False,
) -> RequestForm:
    teams = visitor(request).teams
    return RequestForm(
        data, offering=offering, setting=setting, teams=teams, follows_team=follows_team
    )


def _begun(
    request: HttpRequest,
    offering: Offering,
    setting: OfferingSetting,
    points: list[Point],
    *,
    team: str,
) -> RequestForm:
    """The form that nobody has sent yet, filled in from the link, for this team where it can have the offering."""
    teams, link = visitor(request).teams, request.GET.dict()
    ordered = sorted(teams, key=lambda each: each.slug != team)
    data, lists = starts(
        link, offering, setting, ordered, usual=usual_of(points), now=timezone.now()
    )
    form = RequestForm(
        data, offering=offering, setting=setting, teams=teams, lists=lists
    )
    form.forget_what_is_still_to_be_written()
    return form


def _send(form: RequestForm, request: HttpRequest) -> str:
    """Ask, once per form; returns where the request is. Raises Refused."""
    user, said = visitor(request), form.cleaned_data
    body = {
        name: str(value)
        for name, value in said.items()
        if name not in ("token", "answered", "same")
    }
    body["offering"] = form.offering.key
    key = said["token"] or new_key()
    # What came of the first sending may be what makes the second one impossible, such as a namespace that is there now.
    if at := led_to(user, route=ROUTE, key=key, body=body):
        return at
    wanted = form.wanted
    if said["answered"] and said["answered"] != answer_panel.about(wanted):
        raise BadInput(
            "You changed it after this answer. Here is the new one: look, then ask.",
            code="answer_is_old",
        )
    if said["same"] and answer_panel.same_as(wanted, user, timezone.now()) not in (
        NO_REQUEST,
        said["same"],
    ):
        raise BadInput(
            "You sent the same from elsewhere after this answer. Look at what came of it; or ask for it once more.",
            code="asked_just_now",
        )

    def action() -> str:
        return reverse(
            "request", args=[submit_within(wanted, by=user, now=timezone.now()).pk]
        )

    return once(user, route=ROUTE, key=key, body=body, action=action)


def _data(request: HttpRequest) -> QueryDict:
    """What was sent, with the end that a quick choice stands for."""
    data = request.POST.copy()
    if "quick" in data:
        begins = _begins(str(data.get("starts_at", "")), now=timezone.now())
        data["until"] = quick_end(str(data["quick"]), begins).strftime(INPUT)
    return data


def _begins(text: str, *, now: datetime) -> datetime:
    """From when a quick choice counts: the later moment that the form says, else now."""
    try:
        later = MomentField(required=False).clean(text)
    except ValidationError:
        return now
    return max(now, later) if later is not None else now


def _page(
    request: HttpRequest, form: RequestForm, points: list[Point], *, status: int = 200
) -> HttpResponse:
    chosen = {
        name: str(form.data.get(name, ""))
        for name in ("team", "flavor", "gpus", "until")
    }
    for point in points:
        point["current"] = chosen.items() <= point["values"].items()
    context = _context(request, form) | {
        "points": points,
        "quick_ends": quick_ends(timezone.now()),
        "token": new_key(),
    }
    return render(request, "approvals/request_new.html", context, status=status)


def _context(request: HttpRequest, form: RequestForm) -> dict[str, object]:
    answer = answer_panel.answer_context(
        form, person=visitor(request), now=timezone.now()
    )
    answer["lacks"] = [
        *(
            Lack(text=f"{label}: still to be filled in", field="")
            for label in form.unwritten
        ),
        *answer["lacks"],
    ]
    return {
        **answer,
        **_words(form.offering),
        "form": form,
        "dependent": form.dependent,
    }


def _words(offering: Offering) -> OfferingWords:
    return {
        "offering": offering,
        "after": follows(offering),
        "ask_label": f"Ask for {catalogue_page.kind_of(offering)}",
    }
