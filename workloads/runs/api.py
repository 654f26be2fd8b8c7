"""Runs over the API: where they may go, submitting, following, stopping, and their logs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.models import Team, User
from accounts.replay import Answer, answer_once
from fleet.names import flavor_key
from provisioning.models import Tenancy
from web.refusals import BadInput, BadValues, NoRight, pointer_to
from workloads.explanations import Explanation
from workloads.runs import actions
from workloads.runs.after import skipped_with
from workloads.runs.held_until import too_few_for_plan, too_few_words
from workloads.runs.logs.reading import TAIL, read_log
from workloads.runs.logs.rights import Right
from workloads.runs.logs.streams import stream_of
from workloads.runs.models import Run
from workloads.runs.pages.steps import ask_for
from workloads.runs.planning.places import claims_of, open_to, places_of
from workloads.runs.planning.plan import Place, Plan, Submission
from workloads.runs.planning.resuming import ChangedPlan, submission_of
from workloads.runs.planning.start_verdict import start_verdict_of_plan
from workloads.runs.serializers import (
    ChangedPlanSerializer,
    ChangesSerializer,
    LogQuery,
    LogSerializer,
    NewLimitSerializer,
    PlanSerializer,
    RunPlacesSerializer,
    RunQuery,
    RunSerializer,
    RunShortSerializer,
    StoppedRunSerializer,
    SubmissionSerializer,
    TimeLimitSerializer,
)
from workloads.runs.shown import reasons_of, seen_run, source_of
from workloads.templates.library import lacking, without_topology
from workloads.templates.parameters import normalised

# What a submission says beside the values of its template's parameters.
BESIDE_VALUES = frozenset(SubmissionSerializer().fields)


@contextmanager
def pointing_into_values() -> Iterator[None]:
    """Refuse a parameter's value at its place in the body: forms have one field for each, so actions name it alone."""
    try:
        yield
    except BadInput as refused:
        for one in refused.problems if isinstance(refused, BadValues) else [refused]:
            if one.field == "git_secret":
                one.pointer = pointer_to("repository", "secret")
            elif one.field and one.field not in BESIDE_VALUES:
                one.pointer = pointer_to("values", one.field)
        raise


class RunEndpoint(mixins.ListModelMixin, Endpoint):
    """Training runs and other work that was started in the portal."""

    queryset = Run.objects.none()
    serializer_class = RunSerializer
    lookup_value_converter = "int"
    ordering = "-id"
    asks = {"list": RunQuery, "logs": LogQuery}
    keyed = frozenset({"create", "again", "resume"})
    bodyless = frozenset({"stop"})
    conflicting = frozenset({"logs"})
    previews = frozenset(
        {"preview", "again_preview", "resume_preview", "limit_preview"}
    )
    running = frozenset({"create", "again", "resume", "stop", "limit"})
    asking = running
    reasons: Mapping[int, Explanation] = {}

    def get_queryset(self) -> QuerySet[Run]:
        """Those of one's own teams; all of them for leads and auditors."""
        rows = Run.objects.visible_to(self.request.user)
        return rows.listed() if self.action == "list" else rows.described()

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Short in a list."""
        return RunShortSerializer if self.action == "list" else RunSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        """With the time that costs are told for, and in a list that asks for them the reasons of its runs."""
        context = super().get_serializer_context()
        return {**context, "now": timezone.now(), "reasons": self.reasons}

    def paginate_queryset(self, queryset: Any) -> Any:
        """A page of runs; only what stands on it is explained."""
        page = super().paginate_queryset(queryset)
        if "why" in self.asked and page is not None:
            self.reasons = reasons_of(page, by=self.caller, now=timezone.now())
        return page

    def filter_queryset(self, queryset: Any) -> Any:
        """What was asked for in the address."""
        asked = getattr(self, "asked", {})
        names = ("state", "template", "name")
        queryset = queryset.filter(**{key: asked[key] for key in names if key in asked})
        if "team" in asked:
            # Its number first, so that the index of a team's runs is read in order, whatever is known of the teams.
            team = Team.objects.filter(slug=asked["team"])
            queryset = queryset.filter(team=team.values("pk")[:1])
        if "live" in asked:
            queryset = queryset.filter(ended_at__isnull=asked["live"] == "true")
        return queryset.filter(requester=self.caller) if "mine" in asked else queryset

    @extend_schema(responses=RunSerializer)
    def retrieve(self, call: Call, pk: int) -> Response:
        """One run: why it waits or how it ended, its pods, its cost, and the objects that were created for it."""
        return Response(self._full(self.get_object()))

    @extend_schema(request=SubmissionSerializer, responses={201: RunSerializer})
    def create(self, call: Call) -> Response:
        """Submit a run; a worker creates it on the cluster within seconds."""
        tenancy, asked = self._asked()
        return answer_once(call, lambda: self._made(self._submit(tenancy, asked)))

    @extend_schema(request=SubmissionSerializer, responses=PlanSerializer)
    @action(detail=False, methods=["post"])
    def preview(self, call: Call) -> Response:
        """What would be created, what it would cost, whether it waits, and what stands in its way; nothing is stored.

        With the Idempotency-Key that the submission will have, names and manifests are those that it will have.
        """
        tenancy, asked = self._asked()
        with as_missing(tenancy, to=self.caller):
            plan = actions.preview(tenancy, asked, by=self.caller, key=self._key())
        return Response(self._previewed(plan, PlanSerializer, tenancy, asked.flavor))

    @extend_schema(request=None, responses=StoppedRunSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, call: Call, pk: int) -> Response:
        """End a run: it has its grace for a last checkpoint, then its pods go and its GPUs are free.

        What waits for it is skipped with it. Asked again while it ends it is the same.
        """
        actions.stop(self.get_object().pk, by=self.caller, now=timezone.now())
        run = self.get_object()
        run.skipped = skipped_with(run)
        return Response(self._full(run, StoppedRunSerializer))

    @extend_schema(request=TimeLimitSerializer, responses=RunSerializer)
    @action(detail=True, methods=["post"])
    def limit(self, call: Call, pk: int) -> Response:
        """Give a run another time limit while it waits or runs; it goes on meanwhile.

        A worker tells the cluster within seconds. The same limit again changes nothing.
        """
        run, minutes = self.get_object(), self.body(TimeLimitSerializer)["minutes"]
        actions.change_limit(
            run.pk, minutes=minutes, by=self.caller, now=timezone.now()
        )
        return Response(self._full(self.get_object()))

    @extend_schema(request=TimeLimitSerializer, responses=NewLimitSerializer)
    @action(detail=True, methods=["post"], url_path="limit/preview")
    def limit_preview(self, call: Call, pk: int) -> Response:
        """Until when it would run, what it would cost at most, and what can stop it before; nothing is stored."""
        run, minutes = self.get_object(), self.body(TimeLimitSerializer)["minutes"]
        found = actions.preview_limit(
            run.pk, minutes, by=self.caller, now=timezone.now()
        )
        return Response(self.shown(found, NewLimitSerializer))

    @extend_schema(request=ChangesSerializer, responses={201: RunSerializer})
    @action(detail=True, methods=["post"])
    def again(self, call: Call, pk: int) -> Response:
        """Submit the same once more, or with changes, under a new name; it begins anew."""
        run, changes, now = self.get_object(), self._changes(), timezone.now()
        return answer_once(call, lambda: self._made(self._again(run, changes, now)))

    @extend_schema(request=ChangesSerializer, responses=ChangedPlanSerializer)
    @action(detail=True, methods=["post"], url_path="again/preview")
    def again_preview(self, call: Call, pk: int) -> Response:
        """What submitting it again with these changes would create and cost, what differs, and what stands in its way.

        Nothing is stored.
        """
        return self._changes_previewed(actions.preview_again)

    @extend_schema(request=ChangesSerializer, responses={201: RunSerializer})
    @action(detail=True, methods=["post"])
    def resume(self, call: Call, pk: int) -> Response:
        """Submit the same once more, or with changes, to go on from the last checkpoint that it wrote.

        Its program finds the folder of these checkpoints in QM_RESUME_FROM, and keeps its own there.
        """
        run, changes, now = self.get_object(), self._changes(), timezone.now()
        return answer_once(
            call,
            lambda: self._made(self._resume(run, changes, now)),
        )

    @extend_schema(request=ChangesSerializer, responses=ChangedPlanSerializer)
    @action(detail=True, methods=["post"], url_path="resume/preview")
    def resume_preview(self, call: Call, pk: int) -> Response:
        """What going on with these changes would create and cost, what differs, and what stands in its way.

        Nothing is stored.
        """
        return self._changes_previewed(actions.preview_resume)

    @extend_schema(
        responses={
            200: LogSerializer,
            (200, "text/event-stream"): OpenApiResponse(
                OpenApiTypes.STR,
                description="`id` is a line's place; `event: end` comes last.",
            ),
        }
    )
    @action(detail=True, methods=["get"])
    def logs(self, call: Call, pk: int) -> Response | HttpResponseBase:
        """The last lines of a pod's log, or with `follow=true` a stream that goes on until the program ends.

        A stream ends after ten minutes: ask again with its last id in Last-Event-ID, and no line is missed. It ends
        within seconds when its token does, or its person's right to read the log. Of a pod that is gone there are the
        lines that were kept: up to 1,000 of the last ones. `attempt` asks for those of an earlier attempt.
        """
        run = self.get_object()
        if not actions.may_stop(run.team_id, self.caller):
            raise NoRight(
                "People of the team and platform leads read its logs.",
                code="not_of_the_team",
            )
        pod, attempt = self.asked.get("pod", ""), self.asked.get("attempt")
        source = source_of(run, pod, attempt=attempt)
        after, tail = self.asked.get("after", ""), self.asked.get("tail")
        if "follow" in self.asked:
            right = Right(self.credential, run.team_id)
            return stream_of(call._request, source, right=right, after=after, tail=tail)
        lines = read_log(source, tail=tail or TAIL, after=after)
        return Response(self.shown({"pod": source.pod, "lines": lines}, LogSerializer))

    def _changes_previewed(self, preview: Callable[..., ChangedPlan]) -> Response:
        run, changes = self.get_object(), self._changes()
        found = preview(run.pk, changes, by=self.caller, key=self._key())
        flavor = changes.get("flavor", run.submission["flavor"])
        return Response(
            self._previewed(found, ChangedPlanSerializer, run.tenancy_id, flavor)
        )

    def _previewed(
        self, plan: Plan, serializer: type[PlanSerializer], tenancy_id: int, flavor: str
    ) -> dict[str, Any]:
        """A plan with whether it starts at once, and the form for the GPUs that it lacks."""
        now = timezone.now()
        tenancy = Tenancy.objects.select_related("team", "cluster").get(pk=tenancy_id)
        key = flavor_key(tenancy.cluster.name, flavor)
        context = {
            "start": lambda found: start_verdict_of_plan(found, tenancy, flavor, now),
            "ask": lambda lacks: ask_for(key, lacks, tenancy, now),
            "too_few_held": lambda plan: too_few_for_plan(
                plan, tenancy, flavor, now=now
            ),
            "too_few_words": lambda found: too_few_words(found, tenancy, now=now),
        }
        return dict(serializer(plan, context=context).data)

    def _asked(self) -> tuple[int, Submission]:
        said = self.body(SubmissionSerializer)
        tenancy: int = said.pop("tenancy")
        return tenancy, submission_of({"values": {}, **said})

    def _changes(self) -> dict[str, Any]:
        changes = self.body(ChangesSerializer)
        values = changes.get("values", {})
        return {
            **changes,
            "values": {name: normalised(one) for name, one in values.items()},
        }

    def _submit(self, tenancy: int, asked: Submission) -> Run:
        with as_missing(tenancy, to=self.caller), pointing_into_values():
            return actions.submit(
                tenancy, asked, by=self.caller, key=self._key(), now=timezone.now()
            )

    def _again(self, run: Run, changes: dict[str, Any], now: datetime) -> Run:
        with pointing_into_values():
            return actions.submit_again(
                run, by=self.caller, key=self._key(), now=now, changes=changes
            )

    def _resume(self, run: Run, changes: dict[str, Any], now: datetime) -> Run:
        with pointing_into_values():
            return actions.resume(
                run.pk, by=self.caller, key=self._key(), now=now, changes=changes
            )

    def _key(self) -> str:
        return str(self.request.headers.get("Idempotency-Key", ""))

    def _made(self, run: Run) -> Answer:
        return Answer(self._full(run), 201, f"/api/v1/runs/{run.pk}/")

    def _full(
        self, run: Run, shown_by: type[RunSerializer] = RunSerializer
    ) -> dict[str, Any]:
        run.seen = seen_run(run, by=self.caller, now=timezone.now())  # type: ignore[attr-defined]
        return self.shown(run, shown_by)


@contextmanager
def as_missing(tenancy: int, *, to: User) -> Iterator[None]:
    """A namespace that the caller does not see looks like one that is not there."""
    try:
        yield
    except (Tenancy.DoesNotExist, NoRight) as refusal:
        if not Tenancy.objects.visible_to(to).filter(pk=tenancy).exists():
            raise Http404 from refusal
        raise


class PlaceEndpoint(Endpoint):
    """Where the caller may start runs."""

    serializer_class = RunPlacesSerializer

    @extend_schema(operation_id="places", responses=RunPlacesSerializer)
    def list(self, call: Call) -> Response:
        """The namespaces of one's own teams, with the GPUs held there and the templates that their cluster can run."""
        tenancies = open_to(self.caller)
        places = places_of(tenancies, by=self.caller)
        found = [place_line(*each) for each in zip(tenancies, places, strict=True)]
        return Response(self.shown({"results": found}, RunPlacesSerializer))


def place_line(tenancy: Tenancy, place: Place) -> dict[str, Any]:
    """A place as the API shows it."""
    return {
        "tenancy": tenancy.pk,
        "team": tenancy.team,
        "project": tenancy.project.slug,
        "cluster": tenancy.cluster.name,
        "namespace": tenancy.namespace,
        "follows_git": not tenancy.cluster.is_written_to,
        "flavors": [
            {
                "flavor": name,
                "is_slice": pool.is_slice,
                "device": pool.device,
                **vars(pool),
            }
            for name, pool in place.pools.items()
        ],
        "priorities": place.priorities,
        "volumes": [*claims_of(tenancy)],
        "templates": [
            {
                "slug": one.slug,
                "missing": lacking(one, place.abilities),
                "no_topology": without_topology(one, place.abilities),
            }
            for one in place.templates.values()
        ],
    }
