"""The pages of runs: starting one, following it to its end, its log, and what a team ran before."""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.credentials import Credential
from accounts.current_user import STATUS, add_refusal, visitor, with_refusal
from accounts.idempotency import new_key, once
from accounts.models import Team, User
from approvals.request_form.not_yet import being_made, on_no_cluster
from provisioning.models import Tenancy
from ui.parts import Empty
from web.downloads import PLAIN, text_file
from web.refusals import BadInput, NoRight, Refused
from workloads.runs import actions
from workloads.runs.after import live_after, offered_before
from workloads.runs.logs.reading import MAX_KEPT, PLACE, read_log
from workloads.runs.logs.rights import Right
from workloads.runs.logs.streams import stream_of
from workloads.runs.models import KeptLog, Run
from workloads.runs.pages import page
from workloads.runs.pages.created import manifests_words, not_created_words
from workloads.runs.pages.form import SHOWN_AT, RunForm, starts, starts_again
from workloads.runs.pages.mending import mending_of
from workloads.runs.pages.next_size import next_size_of
from workloads.runs.pages.steps import FILLED_IN, again_link, next_link, resume_link
from workloads.runs.planning.early_stops import early_stop_words
from workloads.runs.planning.places import claims_of, open_to, place_of
from workloads.runs.planning.plan import Place, Plan
from workloads.runs.pods import PodSeen
from workloads.runs.shown import RunSeen, refusal_of_log, seen_run, source_of
from workloads.template_desk.offered import withdrawn
from workloads.templates.library import Template, lacking

ROUTE, ROUTE_AGAIN, ROUTE_RESUME = "page:run-new", "page:run-again", "page:run-resume"
MOST_ROWS = 50
# How soon a browser asks again for the log of a pod that has not started, in milliseconds.
SOON = 2_000


class LogLink(TypedDict):
    """A log to choose."""

    label: str
    href: str


class LogShown(TypedDict):
    """Where a page has a log from; `gone` says why there is none, `others` are kept besides."""

    title: str
    stream: str
    file: str
    gone: str
    others: list[LogLink]


COLUMNS = [
    "Run",
    "State",
    {"label": "GPUs", "kind": "number"},
    "Submitted",
    "Ran for",
    {"label": "Cost", "kind": "number"},
]


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Start a run: the templates, then the form of one with its answer; POST submits it."""
    user = visitor(request)
    if request.method == "POST":
        team = _own_team(user, slug)
    else:
        team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    chosen = _Chosen(request, team, user)
    if chosen.tenancy is None or chosen.template is None or chosen.missing:
        return render(request, "workloads/run_templates.html", chosen.context)
    if request.method != "POST":
        return _page(request, chosen, chosen.form(chosen.starts()))
    form = chosen.form(request.POST)
    if "check" in request.POST:
        return _page(request, chosen, form)
    status = 422
    if "manifest" in request.POST:
        return _download(request, chosen, form)
    if form.is_valid():
        try:
            return HttpResponseRedirect(_submit(chosen, form, user))
        except Refused as refusal:
            status = add_refusal(form, refusal, shown_at=SHOWN_AT)
    return with_refusal(_page(request, chosen, form, status=status), form)


@never_cache
@require_POST
def run_preview(request: HttpRequest, slug: str) -> HttpResponse:
    """The answer to the form as it stands; writes nothing."""
    user = visitor(request)
    chosen = _Chosen(request, _own_team(user, slug), user)
    if chosen.tenancy is None or chosen.template is None or chosen.missing:
        raise Http404
    form = chosen.form(request.POST)
    context = {"form": form, "answer": _answer(chosen, form), "is_preview": True}
    return render(request, "workloads/run_preview.html", context)


@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """A run: its state and the reason for it, its story, pods, log and cost; renews itself until it is over."""
    user, now = visitor(request), timezone.now()
    rows = Run.objects.visible_to(user).described().with_past().with_next()
    found = get_object_or_404(rows, pk=pk)
    seen = seen_run(found, by=user, now=now)
    is_member = found.team_id in user.team_ids
    may_stop = actions.may_stop(found.team_id, user)
    is_gone = found.is_over and not seen.pods
    kept = [*found.kept_pods] if is_gone or _attempt_in(request) is not None else []
    pod = _pod_in(request, seen, kept)
    chosen = pod or next(iter(seen.pods), None)
    is_poll = bool(getattr(request, "htmx", False))
    use = found.overall_use(now)
    # What renews itself every two seconds keeps the advice that it has until the run is over.
    keeps_advice = is_poll and not found.is_over
    context = {
        "run": found,
        "seen": seen,
        "tone": page.run_tone(found),
        "sentence": page.sentence_of(seen),
        "waiting": page.waiting_of(seen.why, found, now),
        "after_it": page.next_runs(found),
        "figures": page.figures_of(seen, use, now),
        "keeps_advice": keeps_advice,
        "next_size": []
        if keeps_advice
        else next_size_of(found, use, is_member=is_member),
        "busy": page.busy_of_page(found, now),
        "story": page.story_of(seen, may_read=may_stop, now=now),
        # What renews itself every two seconds stands below it.
        "ends": "" if is_poll else early_stop_words(found, now),
        "mending": mending_of(found) if is_member else None,
        "keeping": page.keeping_of(seen, now) if is_member else None,
        "facts": page.facts_of(found),
        "yaml": page.yaml_of(found.manifests),
        "manifests_words": manifests_words(found),
        "not_created": not_created_words(found),
        "is_member": is_member,
        "may_stop": may_stop and not found.is_over and found.stop_asked_at is None,
        "may_change_limit": may_stop and found.can_change_limit,
        "other_limit": page.other_limit_words(found),
        "may_read": may_stop,
        "again": again_link(found.team.slug, found.pk),
        "resume": resume_link(found.team.slug, found.pk),
        "next": next_link(found),
        "may_resume": found.is_over
        and found.started_at is not None
        and bool(found.checkpoints),
        "token": new_key(),
        "chosen": chosen,
        "log": _log_of(seen, pod, kept, is_gone=is_gone),
        "logs_kept_days": settings.ENV.logs_kept_days,
    }
    return render(request, "workloads/run.html", context)


@require_safe
def runs(request: HttpRequest, slug: str) -> HttpResponse:
    """What a team started in the portal, the newest first, also what the clusters have forgotten."""
    user, now = visitor(request), timezone.now()
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    rows = Run.objects.filter(team=team).listed()
    before = request.GET.get("before", "")
    if _is_number(before):
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: MOST_ROWS + 1])
    shown = found[:MOST_ROWS]
    context = {
        "team": team,
        "rows": page.rows_of(shown, now),
        "columns": COLUMNS,
        "next": f"?before={shown[-1].pk}" if len(found) > MOST_ROWS else None,
        "first": "?" if before else None,
        "is_member": team.pk in user.team_ids,
    }
    return render(request, "workloads/runs.html", context)


@require_POST
def run_stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for a run's end."""
    user = visitor(request)
    found = get_object_or_404(Run.objects.visible_to(user), pk=pk)
    try:
        actions.stop(found.pk, by=user, now=timezone.now())
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    except Refused as refusal:
        messages.error(request, refusal.message)
    return HttpResponseRedirect(reverse("run", args=[pk]))


@require_POST
def run_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Submit the same once more, once for each form."""
    return _once_more(
        request,
        pk,
        ROUTE_AGAIN,
        lambda run, by, key: actions.submit_again(
            run, by=by, key=key, now=timezone.now()
        ),
        mended_at=lambda run: again_link(run.team.slug, run.pk),
    )


@require_POST
def run_resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Submit it once more to go on from its last checkpoint, once for each form."""
    return _once_more(
        request,
        pk,
        ROUTE_RESUME,
        lambda run, by, key: actions.resume(run.pk, by=by, key=key, now=timezone.now()),
        mended_at=lambda run: resume_link(run.team.slug, run.pk),
    )


def _once_more(
    request: HttpRequest,
    pk: int,
    route: str,
    submit: Callable[[Run, User, str], Run],
    *,
    mended_at: Callable[[Run], str],
) -> HttpResponse:
    """What the plan refuses leads to the form, filled in, whose answer says what helps; the rest back to the run."""
    user = visitor(request)
    found = get_object_or_404(Run.objects.visible_to(user).described(), pk=pk)
    key = request.POST.get("token", "")[:64] or new_key()

    def action() -> str:
        return reverse("run", args=[submit(found, user, f"form:{key}").pk])

    try:
        return HttpResponseRedirect(
            once(user, route=route, key=key, body={"run": str(pk)}, action=action)
        )
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    except BadInput as refusal:
        messages.error(request, refusal.message)
        return HttpResponseRedirect(mended_at(found))
    except Refused as refusal:
        messages.error(request, refusal.message)
        return HttpResponseRedirect(reverse("run", args=[pk]))


@never_cache
@require_safe
def run_log(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The log of one of a run's pods: as a file, or with `follow` as the stream that the run's page shows."""
    user = visitor(request)
    found = get_object_or_404(Run.objects.visible_to(user).described(), pk=pk)
    if not actions.may_stop(found.team_id, user):
        raise PermissionDenied("People of the team and platform leads read its logs.")
    follow, after = "follow" in request.GET, request.GET.get("after", "")
    try:
        pod, attempt = request.GET.get("pod", ""), _attempt_in(request)
        source = source_of(found, pod, attempt=attempt)
        if follow:
            key = request.session.session_key or ""
            return stream_of(
                request,
                source,
                right=Right(Credential(user.pk, session=key), found.team_id),
                after=after if PLACE.fullmatch(after) else "",
            )
        lines = read_log(source, tail=MAX_KEPT)
    except Refused as refusal:
        if follow:
            return _stream_of_refusal(refusal)
        return HttpResponse(
            f"{refusal.message}\n",
            status=STATUS[refusal.sort],
            content_type="text/plain",
        )
    text = "".join(f"{one.text}\n" for one in lines)
    return text_file(text, name=f"{source.pod}.log", content_type=PLAIN)


def _log_of(
    seen: RunSeen,
    pod: PodSeen | KeptLog | None,
    kept: Sequence[KeptLog],
    *,
    is_gone: bool,
) -> LogShown:
    """Where the log of a pod comes from; of none, that of the run's first one. One that is gone comes from nowhere.

    `kept` are the logs of pods that are gone, of which one is shown; of a run that was interrupted each with its
    attempt, for pods of several may have one name.
    """

    def attempt_of(one: PodSeen | KeptLog) -> int | None:
        if not isinstance(one, KeptLog) or not seen.attempts:
            return None
        return one.attempt_number

    def named(one: PodSeen | KeptLog) -> dict[str, str | int]:
        attempt = attempt_of(one)
        return {"pod": one.name, **({} if attempt is None else {"attempt": attempt})}

    def words(one: PodSeen | KeptLog) -> str:
        attempt = attempt_of(one)
        return one.label if attempt is None else f"{one.label}, attempt {attempt}"

    address, chosen = reverse("run-log", args=[seen.run.pk]), named(pod) if pod else {}
    shown = pod or next(iter(kept), None)
    return {
        "title": f"Log of {words(shown)}" if shown else "Log",
        "stream": f"{address}?{urlencode({'follow': 1, **chosen})}",
        "file": f"{address}?{urlencode(chosen)}" if chosen else address,
        "gone": refusal_of_log(seen.run).message if is_gone and not kept else "",
        "others": [
            {"label": words(one), "href": f"?{urlencode(named(one))}#logs"}
            for one in kept
            if one is not shown
        ],
    }


def _pod_in(
    request: HttpRequest, seen: RunSeen, kept: Sequence[KeptLog]
) -> PodSeen | KeptLog | None:
    """The pod that an address chooses: one that is there, or of whose log something is kept."""
    name, attempt = request.GET.get("pod"), _attempt_in(request)
    if attempt is not None:
        of_it = [one for one in kept if one.attempt_number == attempt]
        return next((one for one in of_it if one.name == name), None)
    pods: Sequence[PodSeen | KeptLog] = [*seen.pods, *kept]
    return next((one for one in pods if one.name == name), None)


def _attempt_in(request: HttpRequest) -> int | None:
    """The attempt whose kept log an address asks for."""
    asked = request.GET.get("attempt", "")
    is_number = asked.isascii() and asked.isdigit() and len(asked) < 10
    return int(asked) if is_number else None


def _stream_of_refusal(refusal: Refused) -> HttpResponse:
    """A stream that says why there is no log: it ends for good, or the browser asks again in a moment."""
    is_final = refusal.code in ("log_gone", "log_never_begun", "no_such_pod")
    kind = "end" if is_final else "waiting"
    body = f"retry: {SOON}\n\nevent: {kind}\ndata: {refusal.message}\n\n"
    return HttpResponse(
        body,
        content_type="text/event-stream",
        headers={"Cache-Control": "private, no-store"},
    )


def _is_number(text: str) -> bool:
    """Whether an address or a form names a row by it."""
    return text.isascii() and text.isdigit() and len(text) < 18


class _Chosen:
    """What the address chooses: the team's namespace, the template, and the run whose values fill the form in."""

    def __init__(self, request: HttpRequest, team: Team, user: User) -> None:
        self.team, self.user = team, user
        asked = request.GET
        self.tenancies = [one for one in open_to(user) if one.team_id == team.pk]
        self.resumed = self._run(asked.get("resume", ""))
        self.again = self.resumed or self._run(asked.get("again", ""))
        wanted = asked.get("place", "") or (
            str(self.again.tenancy_id) if self.again else ""
        )
        if self.resumed:
            # Its checkpoints are on a volume of its namespace.
            self.tenancies = [
                one for one in self.tenancies if one.pk == self.resumed.tenancy_id
            ]
        by_pk = {str(one.pk): one for one in self.tenancies}
        self.tenancy: Tenancy | None = by_pk.get(wanted) or _first_with_gpus(
            self.tenancies
        )
        self.moved = self._moved(wanted) if wanted not in by_pk else ""
        self.before = live_after(self.again) if self.again else None
        named = {request.POST.get("after", ""), asked.get("after", "")}
        named.add(str(self.before or ""))
        self.earlier = offered_before(
            team.pk, named=[int(one) for one in named if _is_number(one)]
        )
        slug = asked.get("template", "") or (self.again.template if self.again else "")
        self.slug = slug
        self.given = {key: str(value) for key, value in asked.items()}
        self.place: Place | None = (
            place_of(self.tenancy, by=user) if self.tenancy else None
        )
        self.template: Template | None = (
            self.place.templates.get(slug) if self.place else None
        )

    def _run(self, pk: str) -> Run | None:
        if not _is_number(pk):
            return None
        rows = Run.objects.select_related("tenancy__cluster")
        return rows.filter(team=self.team, pk=int(pk)).first()

    def _moved(self, wanted: str) -> str:
        """That the form is for another place than the address names, and why; empty where it names none."""
        if not wanted or self.tenancy is None:
            return ""
        before = "The link names a place in which your team cannot start runs now."
        if self.again and str(self.again.tenancy_id) == wanted:
            before = _where_nothing_starts(self.again)
        now = f"{self.tenancy.namespace} on {self.tenancy.cluster.title}"
        return f"{before} This one would run in {now}: look at its kind of GPU, its priority and its volumes."

    @property
    def lacks(self) -> Empty | None:
        """Why the team can start no run, with what it can do instead; None where it can."""
        if self.tenancy is not None:
            return None
        if self.resumed:
            return {
                "title": f"Run {self.resumed.pk} cannot go on",
                "text": f"{_where_nothing_starts(self.resumed)} Its checkpoints are on a volume there.",
                "action": {
                    "label": f"Open run {self.resumed.pk}",
                    "href": reverse("run", args=[self.resumed.pk]),
                },
            }
        rows = Tenancy.objects.here().filter(team=self.team)
        made = rows.select_related("cluster", "team").first()
        return being_made(made) if made else on_no_cluster(self.team)

    @property
    def withdrawn(self) -> str:
        """That the template is no longer offered, and what becomes of the run's values; empty where it is."""
        gone = (
            withdrawn(self.slug)
            if self.slug and self.place and not self.template
            else ""
        )
        kept = (
            f" What run {self.again.pk} was submitted with is filled in there."
            if self.again
            else ""
        )
        return f"{gone}{kept}" if gone else ""

    def _link(self, tenancy: Tenancy | None, template: Template | None) -> str:
        """The same page for another place or template, filled in from the same run."""
        kept = {
            name: self.given[name]
            for name in ("again", "resume", "after")
            if self.given.get(name)
        }
        chosen = {"place": tenancy.pk if tenancy else ""} | (
            {"template": template.slug} if template else {}
        )
        return f"?{urlencode(kept | chosen)}"

    @property
    def missing(self) -> str:
        """What the cluster lacks for the template."""
        return (
            lacking(self.template, self.place.abilities)
            if self.template and self.place
            else ""
        )

    @property
    def volumes(self) -> list[str]:
        """The names of the volumes that the portal keeps there."""
        return [*claims_of(self.tenancy)] if self.tenancy else []

    def form(self, data: Any) -> RunForm:
        """The form of the chosen template."""
        assert self.template is not None  # noqa: S101 - asked for only then
        assert self.place is not None  # noqa: S101
        kept = self.resumed.checkpoints if self.resumed else ""
        return RunForm(
            data,
            template=self.template,
            place=self.place,
            volumes=self.volumes,
            resumes=self.resumed.current_submission if self.resumed else None,
            folder=kept,
            earlier=self.earlier,
        )

    def plan(self, form: RunForm) -> Plan:
        """What submitting a clean form comes to; raises as `actions.submit` and `actions.resume`."""
        assert self.tenancy is not None  # noqa: S101 - there is a form only then
        key = _key(form)
        if self.resumed:
            return actions.preview_resume(
                self.resumed.pk, form.changes, by=self.user, key=key
            )
        return actions.preview(self.tenancy.pk, form.submission, by=self.user, key=key)

    def submit(self, form: RunForm) -> Run:
        """Submit a clean form; raises as `actions.submit` and `actions.resume`."""
        assert self.tenancy is not None  # noqa: S101 - there is a form only then
        key, now = _key(form), timezone.now()
        if self.resumed:
            return actions.resume(
                self.resumed.pk, by=self.user, key=key, now=now, changes=form.changes
            )
        return actions.submit(
            self.tenancy.pk, form.submission, by=self.user, key=key, now=now
        )

    def starts(self) -> dict[str, str]:
        """What the form begins with."""
        assert self.template is not None  # noqa: S101 - asked for only then
        assert self.place is not None  # noqa: S101
        given = self.given
        if self.again:
            names = (*FILLED_IN, "after")
            changed = {name: given[name] for name in names if name in given}
            before = {"after": str(self.before)} if self.before else {}
            given = starts_again(self.again.current_submission) | before | changed
        found = starts(self.template, self.place, given)
        if found.get("after") not in {str(one.pk) for one in self.earlier}:
            # The link names one that is not the team's.
            found.pop("after", None)
        return found

    @property
    def context(self) -> dict[str, object]:
        """What both pages show around the form."""
        place = self.place
        return {
            "team": self.team,
            "is_member": self.team.pk in self.user.team_ids,
            "tenancy": self.tenancy,
            "template": self.template,
            "resumed": self.resumed,
            "moved": self.moved,
            "withdrawn": self.withdrawn,
            "places": [
                {
                    "label": f"{one.namespace} on {one.cluster.title}",
                    "href": self._link(one, self.template),
                    "current": one is self.tenancy,
                }
                for one in self.tenancies
            ],
            "cards": [
                {
                    "template": one,
                    "missing": lacking(one, place.abilities),
                    "href": self._link(self.tenancy, one),
                }
                for one in sorted(
                    place.templates.values(),
                    key=lambda one: bool(lacking(one, place.abilities)),
                )
            ]
            if place
            else [],
            "missing": self.missing,
            "lacks": self.lacks,
        }


def _where_nothing_starts(run: Run) -> str:
    """Of which namespace a run is, and why none can start there now."""
    there = run.tenancy
    left = (
        "in which nothing new can start now"
        if there.is_here
        else "which your team leaves"
    )
    return f"Run {run.pk} is of {there.namespace} on {there.cluster.title}, {left}."


def _first_with_gpus(tenancies: list[Tenancy]) -> Tenancy | None:
    """Where a form begins that was told no place: the first namespace with GPUs, else the first."""
    with_gpus = (
        one for one in tenancies if any(quota.gpus for quota in one.desired.flavors)
    )
    return next(with_gpus, None) or next(iter(tenancies), None)


def _own_team(user: User, slug: str) -> Team:
    team = get_object_or_404(Team.objects.visible_to(user), slug=slug)
    if team.pk not in user.team_ids:
        raise PermissionDenied("People of the team start its runs.")
    return team


def _answer(chosen: _Chosen, form: RunForm) -> page.RunAnswer | None:
    """The answer to a form that is clean enough for one; what the plan refuses is put at its fields."""
    if not form.is_valid() or chosen.tenancy is None:
        return None
    asked = form.submission
    try:
        plan = chosen.plan(form)
    except Refused as refusal:
        add_refusal(form, refusal)
        return None
    form.add_problems(plan.problems)
    return page.answer_of(
        plan,
        chosen.tenancy,
        asked.flavor,
        title=asked.title,
        by=chosen.user,
        now=timezone.now(),
    )


def _page(
    request: HttpRequest, chosen: _Chosen, form: RunForm, *, status: int = 200
) -> HttpResponse:
    if not form.data.get("token"):
        form.data = {
            **{name: form.data[name] for name in form.data},
            "token": new_key(),
        }
    answer = _answer(chosen, form)
    if request.method != "POST":
        # Nobody has written anything yet: what is still empty is no mistake.
        for name in form.fields.keys() & form.errors.keys():
            if not form.data.get(name):
                form.errors.pop(name)
    context = chosen.context | {
        "form": form,
        "answer": answer,
        "announced": chosen.tenancy.cluster.announces(timezone.now())
        if chosen.tenancy
        else "",
        "preview_url": _preview_url(request, chosen.team),
    }
    return render(request, "workloads/run_new.html", context, status=status)


def _preview_url(request: HttpRequest, team: Team) -> str:
    return f"{reverse('run-preview', args=[team.slug])}?{request.GET.urlencode()}"


def _submit(chosen: _Chosen, form: RunForm, user: User) -> str:
    """Submit, once per form; returns where the run is. Raises Refused."""
    tenancy = chosen.tenancy
    assert tenancy is not None  # noqa: S101 - there is a form only then

    def action() -> str:
        return reverse("run", args=[chosen.submit(form).pk])

    body = {name: str(value) for name, value in form.submission.as_json().items()}
    body |= {
        "tenancy": str(tenancy.pk),
        "resume": str(chosen.resumed.pk if chosen.resumed else ""),
    }
    return once(user, route=ROUTE, key=_key(form), body=body, action=action)


def _download(request: HttpRequest, chosen: _Chosen, form: RunForm) -> HttpResponse:
    """The objects as a file, exactly those that submitting this form creates; the form where there are none."""
    answer = _answer(chosen, form)
    if answer is None or not answer.is_possible:
        return with_refusal(_page(request, chosen, form, status=422), form)
    name = f"{answer.name}.yaml"
    return text_file(answer.yaml, name=name, content_type="application/yaml")


def _key(form: RunForm) -> str:
    return f"form:{form.data.get('token') or new_key()}"[:80]
