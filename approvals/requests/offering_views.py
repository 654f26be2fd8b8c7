"""The pages for asking for anything but GPUs: the form of an offering, its answer while filling, and sending it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.idempotency import new_key, once
from approvals.requests import asking
from approvals.requests.actions import submit
from approvals.requests.offering_form import OfferingForm, starts
from catalogue import page as catalogue_page
from catalogue.models import OfferingSetting, setting_of
from catalogue.offering import Offering
from catalogue.offerings import OFFERINGS
from web.fields import INPUT
from web.refusals import BadInput, Refused

ROUTE = "page:request-offering"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def request_offering(request: HttpRequest, key: str) -> HttpResponse:
    """Ask for an offering: GET shows form and answer, POST asks; with `check` or `quick` it only answers."""
    offering = _offering(key)
    if offering.key == "gpus":
        return HttpResponseRedirect(reverse("request-new"))
    setting = setting_of(offering)
    if not setting.enabled:
        return render(request, "approvals/offering_off.html", {"offering": offering}, status=409)
    if request.method != "POST":
        teams = visitor(request).teams
        begins = starts(request.GET.dict(), offering, teams, setting, now=timezone.now())
        return _page(request, _form(request, offering, setting, begins))
    only_answers = "check" in request.POST or "quick" in request.POST
    form = _form(request, offering, setting, _data(request), follows_team=only_answers)
    if only_answers:
        return _page(request, form)
    status = 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_send(form, request))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, form, status=status), form)


@never_cache
@require_POST
def request_offering_preview(request: HttpRequest, key: str) -> HttpResponse:
    """The answer to the form as it stands; writes nothing."""
    offering = _offering(key)
    form = _form(request, offering, setting_of(offering), _data(request), follows_team=True)
    changed = [form[name] for name in form.dependent]
    context = _context(request, form) | {
        "is_preview": True,
        "quick": "quick" in request.POST,
        "changed_fields": changed,
    }
    return render(request, "approvals/preview_offering.html", context)


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
) -> OfferingForm:
    teams = visitor(request).teams
    return OfferingForm(data, offering=offering, setting=setting, teams=teams, follows_team=follows_team)


def _send(form: OfferingForm, request: HttpRequest) -> str:
    """Ask, once per form; returns where the request is. Raises Refused."""
    user, said, wanted = visitor(request), form.cleaned_data, form.wanted
    if said["answered"] and said["answered"] != asking.about(wanted):
        raise BadInput(
            "You changed it after this answer. Here is the new one: look, then ask.", code="answer_is_old"
        )
    body = {name: str(value) for name, value in said.items() if name not in ("token", "answered")}
    body["offering"] = form.offering.key

    def action() -> str:
        return reverse("request", args=[submit(wanted, by=user, now=timezone.now()).pk])

    return once(user, route=ROUTE, key=said["token"] or new_key(), body=body, action=action)


def _data(request: HttpRequest) -> QueryDict:
    """What was sent, with the end that a quick choice stands for."""
    data = request.POST.copy()
    if "quick" in data:
        data["until"] = asking.quick_until(str(data["quick"]), timezone.now()).strftime(INPUT)
    return data


def _page(request: HttpRequest, form: OfferingForm, *, status: int = 200) -> HttpResponse:
    context = _context(request, form)
    if request.method != "POST":
        form.forget_what_is_still_to_be_written()
    context |= {
        "rows": [[form[name] for name in line] for line in form.rows],
        "quick_choices": asking.QUICK,
        "token": new_key(),
        "teams": form.teams,
    }
    return render(request, "approvals/request_offering.html", context, status=status)


def _context(request: HttpRequest, form: OfferingForm) -> dict[str, Any]:
    context = asking.answer_context(form, person=visitor(request), now=timezone.now())
    offering = form.offering
    return context | {
        "form": form,
        "offering": offering,
        "ask_label": f"Ask for {catalogue_page.kind_of(offering)}",
        "dependent": form.dependent,
    }
