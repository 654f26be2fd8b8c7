"""Pages of onboarding: the wizard, and the list of objects that becomes true."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import STATUS, sent, tell_refusal, visitor, with_refusal
from accounts.directory.client import graph
from accounts.idempotency import led_to, once
from accounts.models import Team
from capacity.registry import actions as registry
from connectors.errors import ConnectorError
from onboarding import journey, presenting
from onboarding.actions import ask_directory, enrol
from onboarding.forms import StartForm, WhereForm, WhoForm
from onboarding.fragments import found_groups
from onboarding.journey import Draft
from onboarding.models import Onboarding
from onboarding.progress import progress_of
from onboarding.recommending import KEYS, recommend
from provisioning import actions as provisioning
from provisioning.models import Tenancy
from web.refusals import Refused

GONE = "That draft is gone: it was kept for as long as you were signed in. Start again."


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def wizard(request: HttpRequest) -> HttpResponse:
    """Bring a team on board, step by step; the address names the draft and the step."""
    key, step = request.GET.get("draft", ""), request.GET.get("step", "who")
    draft = journey.load(request.session, key) if key else journey.new_draft()
    if draft is None and step == "who" and request.method == "POST":
        draft = Draft(key[:64])
    if draft is None or step not in journey.STEPS:
        messages.warning(request, GONE)
        return redirect("onboard")
    order = list(journey.STEPS)
    if order.index(step) > order.index(draft.next_step):
        return redirect(draft.url(draft.next_step))
    return STEP_VIEWS[step](request, draft)


def _who(request: HttpRequest, draft: Draft) -> HttpResponse:
    user, data = visitor(request), sent(request)
    text = request.POST.get("group_search", "")
    searching = "search" in request.POST
    bound = None if searching else data
    suggested = {"entra_group": request.GET.get("group", "")}
    initial = request.POST.dict() if searching else suggested | dict(draft.values)
    form = WhoForm(bound, initial=initial, user=user, graph=graph())
    if bound is not None and form.is_valid():
        return _keep(
            request, draft, "who", form.cleaned_data, group_name=form.group_name
        )
    chosen = str(form["entra_group"].value() or "")
    extra = {
        **found_groups(user, text=text, chosen=chosen),
        "group_name": draft.group_name,
    }
    return _step(request, draft, "who", form, extra)


def _where(request: HttpRequest, draft: Draft) -> HttpResponse:
    form = WhereForm(sent(request), initial=dict(draft.values) or None, draft=draft.key)
    if form.is_valid():
        values = form.cleaned_data | {"cluster": form.cleaned_data["cluster"].name}
        return _keep(request, draft, "where", values)
    cards = presenting.cluster_cards(journey.open_clusters())
    said = {key: str(form[key].value() or "") for key in KEYS}
    extra = {
        "clusters": cards,
        "environments": presenting.environments(),
        "recommendation": recommend(said),
    }
    return _step(request, draft, "where", form, extra)


def _start(request: HttpRequest, draft: Draft) -> HttpResponse:
    cluster = journey.cluster_of(draft)
    if cluster is None:
        return redirect(draft.url("where"))
    now = timezone.now()
    sizes = presenting.sizes(cluster, now=now)
    initial = {"size": sizes[1]["value"] if len(sizes) > 2 else "none", **draft.values}
    data = sent(request)
    form = StartForm(data, initial=initial, cluster=cluster)
    if form.is_valid() and presenting.takes(
        form, draft, person=visitor(request), now=now
    ):
        values = {name: str(request.POST.get(name, "")) for name in form.fields}
        return _keep(request, draft, "start", values)
    # A form of its own: what the policy says against the ask does not take its answer away.
    shown = StartForm(initial if data is None else data, cluster=cluster)
    return _step(
        request,
        draft,
        "start",
        form,
        {
            "sizes": sizes,
            **presenting.answer_to(shown, draft, person=visitor(request), now=now),
        },
    )


def _review(request: HttpRequest, draft: Draft) -> HttpResponse:
    refused: Mapping[str, Any] = {}
    status = 200
    if request.method == "POST":
        try:
            return redirect(_send(request, draft))
        except Refused as refusal:
            status = STATUS[refusal.sort]
            refused = {
                "detail": refusal.message,
                "code": refusal.code,
                "back": journey.step_of(refusal.field),
            }
        except ConnectorError as error:
            status, refused = (
                503,
                {
                    "detail": f"The directory does not answer: {error.message}",
                    "code": "directory",
                },
            )
    people = presenting.people_of(draft.values["entra_group"], graph())
    context = {
        **presenting.review(
            draft, person=visitor(request), people=people, now=timezone.now()
        ),
        "refused": refused,
        "draft": draft,
        "steps": presenting.steps(draft, "review"),
    }
    response = render(request, "onboarding/review.html", context, status=status)
    if refused:
        response.refusal = dict(refused)  # type: ignore[attr-defined]
    return response


STEP_VIEWS: Mapping[str, Callable[[HttpRequest, Draft], HttpResponse]] = {
    "who": _who,
    "where": _where,
    "start": _start,
    "review": _review,
}


def _send(request: HttpRequest, draft: Draft) -> str:
    """Bring the team on board, once for this draft however often it is sent; the address it leads to."""
    user, now, body = visitor(request), timezone.now(), dict(draft.values)
    before = partial(led_to, user, route="onboard", key=draft.key, body=body)
    if at := before():
        return at
    enrolment = journey.enrolment_of(draft, now=now)
    try:
        # The directory is asked before the transaction begins.
        brought = ask_directory(enrolment, by=user, graph=graph())
    except Refused:
        # The same form may have been answered while the directory was asked.
        if at := before():
            return at
        raise

    def act() -> str:
        done = enrol(enrolment, brought=brought, by=user, now=timezone.now())
        return reverse("onboarding", args=[done.team.slug])

    return once(user, route="onboard", key=draft.key, body=body, action=act)


def _keep(
    request: HttpRequest,
    draft: Draft,
    step: str,
    values: Mapping[str, Any],
    *,
    group_name: str = "",
) -> HttpResponse:
    kept = {name: str(value) for name, value in values.items()}
    draft = draft.with_step(step, kept, group_name=group_name)
    journey.save(request.session, draft)
    return redirect(draft.url(draft.next_step))


def _step(
    request: HttpRequest,
    draft: Draft,
    step: str,
    form: BaseForm,
    extra: Mapping[str, Any],
) -> HttpResponse:
    context = {
        "draft": draft,
        "step": step,
        "steps": presenting.steps(draft, step),
        "form": form,
        **extra,
    }
    status = 422 if form.errors else 200
    response = render(request, f"onboarding/{step}.html", context, status=status)
    return (
        with_refusal(response, form, detail="The step was not taken.")
        if form.errors
        else response
    )


@require_safe
def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """What was created for a team, object by object, against the promise of seconds."""
    rows = Onboarding.objects.visible_to(request.user).select_related(
        "team", "tenancy__cluster", "request", "by"
    )
    found = get_object_or_404(rows, team__slug=slug)
    context = progress_of(found, by=visitor(request), now=timezone.now())
    return render(request, "onboarding/progress.html", context)


@require_POST
def look_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a worker look at a tenancy now."""
    tenancy = get_object_or_404(
        Tenancy.objects.visible_to(request.user).select_related("team"), pk=pk
    )
    try:
        provisioning.look_again(tenancy, by=visitor(request), now=timezone.now())
    except Refused as refusal:
        raise PermissionDenied(refusal.message) from refusal
    messages.success(request, "A worker looks at it now.")
    return redirect(
        "onboarding" if Onboarding.objects.filter(tenancy=tenancy).exists() else "team",
        tenancy.team.slug,
    )


@require_POST
def look_again_at_images(request: HttpRequest, slug: str) -> HttpResponse:
    """Have a worker look at a team's access to the registry now."""
    team = get_object_or_404(Team.objects.visible_to(request.user), slug=slug)
    try:
        registry.try_again(team, by=visitor(request), now=timezone.now())
    except Refused as refusal:
        tell_refusal(request, refusal)
    else:
        messages.success(request, "A worker looks at it now.")
    return redirect("team", team.slug)
