"""The pages of notebooks: choosing and launching one, following it, stopping, starting again, keeping, removing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import (
    STATUS,
    add_refusal,
    sent,
    visible_team,
    visitor,
    with_refusal,
)
from accounts.idempotency import new_key, once
from accounts.models import Team, User
from notebooks.hubs.models import Hub
from notebooks.models import NotebookServer
from notebooks.profiles.idle import Reclaim
from notebooks.servers import actions
from notebooks.servers.models import IN_MOTION
from notebooks.servers.states import State
from provisioning.models import Tenancy
from web.refusals import Conflict, NoRight, Refused
from workloads.choosing.page import Answer, Card, Outcome, away_of, cards_of
from workloads.freshness import seen_of
from workloads.notebook_pages import page
from workloads.notebook_pages.form import (
    ExemptForm,
    KeepForm,
    LaunchForm,
    StartForm,
    choices_in,
)
from workloads.notebook_pages.shown import seen_server
from workloads.notebook_pages.words import idle_words, limit_words
from workloads.runs.pages.secrets_field import written
from workloads.runs.planning.places import open_to

ROUTE = "page:notebook-launch"
# How often a server's page asks again: while it starts or stops, and while it only ages.
SOON, SELDOM = "2s", "15s"
# What the form to exempt a notebook begins with.
EXEMPT_FOR = timedelta(days=7)
# Of what would start at once, where no hub starts it.
NO_HUB = Answer(
    outcome=Outcome.REFUSED,
    sentence="Not launched from here",
    detail="This cluster has no JupyterHub that the portal knows. Your platform team can connect one.",
)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def notebooks(request: HttpRequest, slug: str) -> HttpResponse:
    """A team's notebooks, and the profiles in one of its namespaces with what each costs; POST launches one."""
    user = visitor(request)
    team = visible_team(user, slug)
    if request.method == "POST" and team.pk not in user.team_ids:
        raise PermissionDenied("People of the team start its notebooks.")
    tenancies = [one for one in open_to(user) if one.team_id == team.pk]
    chosen = next(
        (one for one in tenancies if str(one.pk) == request.GET.get("place")), None
    )
    tenancy = chosen or _usual_place(tenancies)
    shown = _shown(request, team, user, tenancies, tenancy)
    if request.method != "POST":
        return _page(request, shown)
    card = next(
        (
            one
            for one in shown.cards
            if one.profile.document.slug == request.POST.get("profile")
        ),
        None,
    )
    if tenancy is None or card is None:
        messages.error(
            request, "This profile can no longer be chosen here. Choose another."
        )
        return HttpResponseRedirect(request.get_full_path())
    form = LaunchForm(card.profile.document, request.POST)
    status = 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_launch(form, tenancy, user))
        except Refused as refusal:
            form.add_refusal(refusal)
            status = STATUS[refusal.sort]
    return with_refusal(_page(request, shown, form=form, status=status), form)


@require_safe
def notebook(request: HttpRequest, pk: int) -> HttpResponse:
    """A notebook server: its state and the reason for it, its story, cost and end; renews itself while it changes."""
    user = visitor(request)
    return _notebook(request, user, _found(user, pk))


def _notebook(
    request: HttpRequest,
    user: User,
    server: NotebookServer,
    *,
    form: StartForm | None = None,
    status: int = 200,
) -> HttpResponse:
    now = timezone.now()
    seen = seen_server(server, by=user, now=now)
    allowed = page.may(server, user, leads=actions.teams_led_by(user))
    state = State(server.state)
    context = {
        "server": server,
        "seen": seen,
        "may": allowed,
        "keeps_at_once": not server.kept_times,
        **page.badge_of(seen),
        "sentence": page.sentence_of(seen, by=user),
        "next_step": page.next_step_of(server, allowed),
        "instead": page.instead_of(server) if allowed.replace else None,
        "waiting": page.waiting_of(seen, now),
        "idle": page.idle_notice_of(seen, now),
        "end": page.end_notice_of(seen, user, now),
        "exempt": server.is_exempt(now),
        "idle_unknown": page.idle_unknown_of(seen, now),
        "going_first": page.going_first_of(seen),
        "maintained": page.maintenance_words(seen, now),
        "hub_notice": page.hub_notice_of(seen.hub, now, of_server=True),
        "figures": page.figures_of(seen, now),
        "story": page.story_of(seen, now=now),
        "facts": page.facts_of(seen, page.choices_of(seen)),
        "form": form or StartForm.of(server),
        "every": SOON if state in IN_MOTION else SELDOM if state.is_live else "",
    }
    return render(request, "workloads/notebook.html", context, status=status)


@require_POST
def notebook_stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for a server's end."""
    return _act(
        request, pk, lambda server, by: actions.stop(server, by=by, now=timezone.now())
    )


@require_POST
def notebook_start(request: HttpRequest, pk: int) -> HttpResponse:
    """Start a stopped server again with its choices, with other variables from Secrets where the form has them."""
    if "secrets" in request.POST:
        return _start_with(request, pk, StartForm(request.POST))
    return _act(
        request, pk, lambda server, by: actions.start(server, by=by, now=timezone.now())
    )


def _start_with(request: HttpRequest, pk: int, form: StartForm) -> HttpResponse:
    user, there = visitor(request), HttpResponseRedirect(reverse("notebook", args=[pk]))
    server, status = _found(user, pk), 422
    if server.owner_id != user.pk:
        raise PermissionDenied("Who launched a notebook starts it again.")
    if form.is_valid():
        secrets = form.secrets_named
        try:
            actions.start(pk, by=user, now=timezone.now(), secrets=secrets)
        except NoRight as refusal:
            raise PermissionDenied(refusal.message) from refusal
        except Conflict as refusal:
            # Its page has no form then, or the form is not what is wrong.
            messages.error(request, refusal.message)
            return there
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            return there
    return with_refusal(
        _notebook(request, user, server, form=form, status=status), form
    )


@require_http_methods(["GET", "HEAD", "POST"])
def notebook_keep(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep a server for two hours though nobody uses it; the form asks why from the second time on."""
    user = visitor(request)
    server = _found(user, pk)
    if not actions.may_keep(server, user):
        raise PermissionDenied("Its owner and platform leads keep a notebook.")
    form = KeepForm(sent(request))
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                actions.keep(
                    pk, by=user, now=timezone.now(), reason=form.cleaned_data["reason"]
                )
            except Conflict as refusal:
                messages.error(request, refusal.message)
                return HttpResponseRedirect(reverse("notebook", args=[pk]))
            except Refused as refusal:
                status = add_refusal(form, refusal)
            else:
                return HttpResponseRedirect(reverse("notebook", args=[pk]))
    context = {"form": form, "server": server}
    response = render(request, "workloads/notebook_keep.html", context, status=status)
    return with_refusal(response, form) if form.errors else response


@require_http_methods(["GET", "HEAD", "POST"])
def notebook_exempt(request: HttpRequest, pk: int) -> HttpResponse:
    """Exempt a notebook from idle stops until a date, or change that."""
    user = visitor(request)
    server = _found(user, pk)
    if not actions.may_exempt(user):
        raise PermissionDenied("Platform leads exempt notebooks from idle stops.")
    now, status = timezone.now(), 200
    until = server.exempt_until if server.is_exempt(now) else now + EXEMPT_FOR
    initial = {"until": until, "reason": server.exempt_reason}
    form = ExemptForm(sent(request), label_suffix="", initial=initial)
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                actions.exempt(pk, **form.cleaned_data, by=user, now=now)
            except Refused as refusal:
                status = add_refusal(form, refusal)
            else:
                return HttpResponseRedirect(reverse("notebook", args=[pk]))
    context = {"form": form, "server": server}
    response = render(request, "workloads/notebook_exempt.html", context, status=status)
    return with_refusal(response, form) if form.errors else response


@require_POST
def notebook_exempt_end(request: HttpRequest, pk: int) -> HttpResponse:
    """End a notebook's exemption from idle stops before its time."""
    return _act(
        request,
        pk,
        lambda server, by: actions.end_exemption(server, by=by, now=timezone.now()),
    )


@require_POST
def notebook_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Forget a stopped server."""
    user = visitor(request)
    server = _found(user, pk)
    try:
        actions.remove(pk, by=user)
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    except Refused as refusal:
        messages.error(request, refusal.message)
        return HttpResponseRedirect(reverse("notebook", args=[pk]))
    return HttpResponseRedirect(reverse("notebooks", args=[server.team.slug]))


def _found(user: User, pk: int) -> NotebookServer:
    rows = (
        NotebookServer.objects.visible_to(user)
        .described()
        .select_related("tenancy__cluster__hub")
    )
    return get_object_or_404(rows, pk=pk)


def _act(
    request: HttpRequest, pk: int, act: Callable[[int, User], object]
) -> HttpResponse:
    """Do one thing with a server and lead to its page, which says what came of it."""
    user = visitor(request)
    if not NotebookServer.objects.visible_to(user).filter(pk=pk).exists():
        raise Http404
    try:
        act(pk, user)
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    except Refused as refusal:
        messages.error(request, refusal.message)
    return HttpResponseRedirect(reverse("notebook", args=[pk]))


def _usual_place(tenancies: Sequence[Tenancy]) -> Tenancy | None:
    """The first namespace where something can be launched, else the first; one query where there are several."""
    if len(tenancies) < 2:
        return next(iter(tenancies), None)
    clusters = {one.cluster_id for one in tenancies}
    with_hub = set(
        Hub.objects.filter(cluster__in=clusters).values_list("cluster", flat=True)
    )
    return next((one for one in tenancies if one.cluster_id in with_hub), tenancies[0])


def _launch(form: LaunchForm, tenancy: Tenancy, user: User) -> str:
    """Launch, once per form; returns where the server is. Raises Refused."""
    key = f"form:{form.cleaned_data['token'] or new_key()}"
    slug, title, options = form.document.slug, form.cleaned_data["title"], form.options
    secrets = form.secrets_named

    def action() -> str:
        server = actions.launch(
            tenancy.pk,
            slug,
            options,
            by=user,
            key=key,
            now=timezone.now(),
            title=title,
            secrets=secrets,
        )
        return reverse("notebook", args=[server.pk])

    body = {
        "tenancy": str(tenancy.pk),
        "profile": slug,
        "title": title,
        "secrets": written(form.cleaned_data["secrets"]),
        **options,
    }
    return once(user, route=ROUTE, key=key, body=body, action=action)


@dataclass(frozen=True)
class _Shown:
    """What the page of notebooks is about: a team, its namespaces, and the profiles in the chosen one.

    `notice` says that its cluster or its hub does not answer.
    """

    team: Team
    user: User
    tenancies: Sequence[Tenancy]
    tenancy: Tenancy | None
    hub: Hub | None = None
    cards: Sequence[Card] = ()
    notice: str = ""


def _shown(
    request: HttpRequest,
    team: Team,
    user: User,
    tenancies: Sequence[Tenancy],
    tenancy: Tenancy | None,
) -> _Shown:
    if tenancy is None:
        return _Shown(team, user, tenancies, None)
    now = timezone.now()
    hub = Hub.objects.filter(cluster=tenancy.cluster_id).first()
    seen = seen_of(tenancy.cluster, now)
    away = away_of(hub, seen, now)
    cards = cards_of(tenancy, now=now, away=away, choices=choices_in(request))
    notice = page.hub_notice_of(hub, now, of_server=False)
    return _Shown(
        team,
        user,
        tenancies,
        tenancy,
        hub,
        cards,
        notice or page.silence_notice_of(seen, now),
    )


def _page(
    request: HttpRequest,
    shown: _Shown,
    *,
    form: LaunchForm | None = None,
    status: int = 200,
) -> HttpResponse:
    now, team, tenancy, hub = timezone.now(), shown.team, shown.tenancy, shown.hub
    context = {
        "team": team,
        "is_member": team.pk in shown.user.team_ids,
        "tenancy": tenancy,
        "places": [
            {
                "label": f"{one.namespace} on {one.cluster.title}",
                "href": f"?{urlencode({'place': one.pk})}",
                "current": one is tenancy,
            }
            for one in shown.tenancies
        ],
        "hub": hub,
        "announced": tenancy.cluster.announces(now) if tenancy else "",
        "notice": shown.notice,
        "cards": [_card(one, hub, form) for one in shown.cards],
        "servers": page.lists_of(team, shown.user, now=now),
        "first": {
            "label": "Ask for GPUs",
            "href": f"{reverse('request-new')}?{urlencode({'team': team.slug})}",
        },
    }
    return render(request, "workloads/notebooks.html", context, status=status)


@dataclass(frozen=True, kw_only=True)
class CardShown:
    """A profile's card with its form, and how long its server lives."""

    card: Card
    form: LaunchForm | None
    idle: str
    limit: str


def _card(card: Card, hub: Hub | None, sent_form: LaunchForm | None) -> CardShown:
    """A profile's card with its form, None where nothing can be launched; the form that was refused stays filled in."""
    document = card.profile.document
    starts = card.answer.outcome in (Outcome.NOW, Outcome.QUEUE)
    if hub is None and starts:
        card = replace(card, answer=NO_HUB)
    if sent_form is not None and sent_form.document.slug == document.slug:
        form: LaunchForm | None = sent_form
    elif hub is not None and starts:
        form = LaunchForm(document)
    else:
        form = None
    return CardShown(
        card=card,
        form=form,
        idle=idle_words(document, Reclaim(hub.reclaim)) if hub is not None else "",
        limit=limit_words(document),
    )
