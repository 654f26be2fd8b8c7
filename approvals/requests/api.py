"""What was asked, how it was judged, and deciding it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Model, Prefetch, Q, QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.directory import freshness
from accounts.endpoints import Endpoint
from accounts.models import Team
from accounts.replay import Answer, answer_once
from allocations.api import EndEarlySerializer
from allocations.bookings.actions import start_of
from allocations.models import MADE_BY, Allocation
from approvals.conversation import actions as conversation
from approvals.decisions import actions as decisions
from approvals.fulfilment import actions as fulfilment
from approvals.judging.inputs import policy_in_force
from approvals.models import Comment, Decision, Evaluation, Request, Rerouting, Step
from approvals.renewals import renewing
from approvals.requests import actions
from approvals.requests.listing import narrowed
from approvals.requests.pointers import pointing
from approvals.requests.preview import preview_of
from approvals.requests.prices import with_votes
from approvals.requests.queries import ApprovalQuery, RequestQuery
from approvals.requests.serializers import (
    SHORT_FORM,
    ApproveSerializer,
    AskSerializer,
    CommentSerializer,
    CommentsSerializer,
    EditSerializer,
    FlavorOptionQuery,
    OptionSerializer,
    OptionsSerializer,
    PolicySerializer,
    PreviewSerializer,
    RejectSerializer,
    RenewSerializer,
    RequestSerializer,
    RequestShortSerializer,
    TextSerializer,
)
from approvals.requests.wanted import Wanted, kept_namespace, resolve
from approvals.states import State
from approvals.versions import etag_of, is_known, seen_version
from catalogue import choices
from provisioning.models import Tenancy

ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description="Send it as If-Match.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="An ETag you have."
)
DECISIONS = frozenset({"approve", "reject", "ask"})
MOST_COMMENTS = 200


class RequestEndpoint(mixins.ListModelMixin, Endpoint):
    """The requests that the caller may see."""

    queryset = Request.objects.none()
    serializer_class = RequestSerializer
    lookup_value_converter = "int"
    ordering = "-created_at"
    asks = {"list": RequestQuery}
    keyed = DECISIONS | {
        "create",
        "withdraw",
        "let_go",
        "answer",
        "add_comment",
        "renew",
    }
    bodyless = frozenset({"withdraw"})
    guarded = DECISIONS | {"partial_update"}
    previews = frozenset({"preview", "preview_renewal"})
    asking = frozenset(
        {
            "create",
            "partial_update",
            "add_comment",
            "withdraw",
            "let_go",
            "renew",
            "answer",
        }
    )

    def get_queryset(self) -> QuerySet[Request]:
        """Those of one's own teams; all of them for leads and auditors; one alone also for who decides it."""
        user = self.request.user
        if self.action == "list" or not user.is_authenticated:
            return listed(Request.objects.visible_to(user))
        rows = Request.objects.open_to(user, timezone.now())
        return whole(rows) if self.action == "retrieve" else described(rows)

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Short in a list."""
        return RequestShortSerializer if self.action == "list" else RequestSerializer

    def filter_queryset(self, queryset: Any) -> Any:
        """What was asked for in the address."""
        asked = getattr(self, "asked", {})
        names = {
            "team": "team__slug",
            "state": "state",
            "offering": "offering",
            "requester": "requester__oid",
            "updated_since": "updated_at__gte",
        }
        queryset = queryset.filter(
            **{names[key]: asked[key] for key in names if key in asked}
        )
        if "live" in asked:
            queryset = queryset.live() if asked["live"] == "true" else queryset.over()
        if text := asked.get("q"):
            queryset = queryset.filter(
                Q(reason__icontains=text)
                | Q(requester__name__icontains=text)
                | Q(flavor__name__icontains=text)
            )
        return queryset

    @extend_schema(
        parameters=[ETAG, IF_NONE_MATCH],
        responses={
            200: RequestSerializer,
            304: OpenApiResponse(description="You have it already."),
        },
    )
    def retrieve(self, call: Call, pk: int) -> Response:
        """One request with everything about it."""
        request = self.get_object()
        body = self.shown(request, RequestSerializer)
        etag = etag_of(request.version, JSONRenderer().render(body))
        if is_known(call, etag):
            return Response(status=304, headers={"ETag": etag})
        return Response(body, headers={"ETag": etag})

    @extend_schema(request=AskSerializer, responses={201: RequestSerializer})
    def create(self, call: Call) -> Response:
        """Ask for GPUs; a small ask is approved at once."""
        # What is asked is looked up once only: a repetition would find that there is what it asks for.
        with pointing(call, has_short_form=True):
            return answer_once(call, lambda: self._submit(self._wanted()))

    @extend_schema(request=EditSerializer, responses=RequestSerializer)
    def partial_update(self, call: Call, pk: int) -> Response:
        """Change one's own request while it waits: it is judged anew, and earlier votes are void."""
        version, said = seen_version(call), self.body(EditSerializer)
        found = self.get_object()
        is_short = any(name in call.data for name in SHORT_FORM)
        with pointing(call, has_short_form=is_short):
            wanted = resolve(
                found.offering,
                found.spec | said.get("spec", {}),
                team=found.team,
                until=said.get("until", found.until),
                starts=_starts(said, found),
                reason=said.get("reason", found.reason),
                namespace=said.get("namespace", "")
                or kept_namespace(found, said.get("spec", {})),
            )
            edited = conversation.edit(
                found.pk,
                wanted,
                by=self.caller,
                expected_version=version,
                now=timezone.now(),
            )
        return Response(self._full(edited.pk))

    @extend_schema(operation_id="requests_comments_list", responses=CommentsSerializer)
    @action(detail=True, methods=["get"])
    def comments(self, call: Call, pk: int) -> Response:
        """What was said about it, oldest first: the last 200 comments."""
        rows = (
            Comment.objects.filter(request=self.get_object())
            .select_related("by")
            .order_by("-at", "-id")
        )
        return Response(
            {
                "results": CommentSerializer(
                    list(rows[:MOST_COMMENTS])[::-1], many=True
                ).data
            }
        )

    @extend_schema(request=TextSerializer, responses={201: CommentSerializer})
    @comments.mapping.post
    def add_comment(self, call: Call, pk: int) -> Response:
        """Say something about it; no decision becomes stale by it."""
        found, text = self.get_object().pk, self.body(TextSerializer)["text"]

        def effect() -> Answer:
            made = conversation.comment(
                found, by=self.caller, text=text, now=timezone.now()
            )
            return Answer(CommentSerializer(made).data, 201)

        return answer_once(call, effect)

    @extend_schema(request=AskSerializer, responses=PreviewSerializer)
    @action(detail=False, methods=["post"])
    def preview(self, call: Call) -> Response:
        """What would be said to this ask; nothing is stored."""
        with pointing(call, has_short_form=True):
            found = preview_of(self._wanted(), by=self.caller, now=timezone.now())
        return Response(found)

    @extend_schema(request=None, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, call: Call, pk: int) -> Response:
        """Take one's own request back while it waits."""
        return self._change(
            lambda found: actions.withdraw(found, by=self.caller, now=timezone.now())
        )

    @extend_schema(request=EndEarlySerializer, responses=RequestSerializer)
    @action(detail=True, methods=["post"], url_path="let-go")
    def let_go(self, call: Call, pk: int) -> Response:
        """End what takes no GPUs before its date, or cancel a booking; what it will not cost is free again."""
        reason = self.body(EndEarlySerializer).get("reason", "")
        return self._change(
            lambda found: fulfilment.release(
                found, by=self.caller, now=timezone.now(), reason=reason
            )
        )

    @extend_schema(request=RenewSerializer, responses={201: RequestSerializer})
    @action(detail=True, methods=["post"])
    def renew(self, call: Call, pk: int) -> Response:
        """Ask to keep what is held under it longer; judged like any ask, without a gap if granted before its end."""
        return answer_once(call, lambda: self._submit(self._longer()))

    @extend_schema(request=RenewSerializer, responses=PreviewSerializer)
    @action(detail=True, methods=["post"], url_path="renew/preview")
    def preview_renewal(self, call: Call, pk: int) -> Response:
        """What would be said to keeping it longer; nothing is stored."""
        return Response(preview_of(self._longer(), by=self.caller, now=timezone.now()))

    def _longer(self) -> Wanted:
        """The renewal in the body; raises Conflict when nothing is held any more."""
        found, said, now = self.get_object(), self.body(RenewSerializer), timezone.now()
        held = renewing.held_under(found, now=now)
        until = said.get("until") or (
            renewing.usual_until(held) if held is not None else now
        )
        return renewing.wanted(
            found, until=until, reason=said.get("reason", ""), now=now
        )

    @extend_schema(request=TextSerializer, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def answer(self, call: Call, pk: int) -> Response:
        """Answer the approver's question."""
        text = self.body(TextSerializer)["text"]
        return self._change(
            lambda found: actions.answer(
                found, by=self.caller, text=text, now=timezone.now()
            )
        )

    @extend_schema(request=ApproveSerializer, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def approve(self, call: Call, pk: int) -> Response:
        """Approve the open step as it was seen, for fewer units or until an earlier end if the body says so."""
        vote = self.body(ApproveSerializer)
        return self._decide(decisions.approve, **vote)

    @extend_schema(request=RejectSerializer, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def reject(self, call: Call, pk: int) -> Response:
        """Reject it, with a reason."""
        return self._decide(decisions.reject, **self.body(RejectSerializer))

    @extend_schema(request=TextSerializer, responses=RequestSerializer)
    @action(detail=True, methods=["post"])
    def ask(self, call: Call, pk: int) -> Response:
        """Ask the requester something; it keeps waiting."""
        return self._decide(
            decisions.ask_back, question=self.body(TextSerializer)["text"]
        )

    def _decide(self, decide: Callable[..., Request], **said: Any) -> Response:
        version = seen_version(self.request)
        freshness.renew(self.caller, now=timezone.now())
        return self._change(
            lambda found: decide(
                found,
                by=self.caller,
                expected_version=version,
                now=timezone.now(),
                **said,
            )
        )

    def _change(self, change: Callable[[int], Request]) -> Response:
        """Do it once, and answer with the request as it then is."""
        found: int = self.get_object().pk
        return answer_once(self.request, lambda: Answer(self._full(change(found).pk)))

    def _wanted(self) -> Wanted:
        """The ask in the body; raises Http404 for a team that is not there to see, BadInput for a wrong spec."""
        said = self.body(AskSerializer)
        # Almost always one of the caller's own, which have been read.
        own = next(
            (team for team in self.caller.teams if team.slug == said["team"]), None
        )
        team = own or get_object_or_404(
            Team.objects.visible_to(self.caller), slug=said["team"]
        )
        return resolve(
            said.get("offering", "gpus"),
            said["spec"],
            team=team,
            until=said["until"],
            starts=start_of(
                said.get("starts_at"), until=said["until"], now=timezone.now()
            ),
            reason=said.get("reason", ""),
            namespace=said.get("namespace", ""),
        )

    def _submit(self, wanted: Wanted) -> Answer:
        request = actions.submit_within(wanted, by=self.caller, now=timezone.now())
        was_decided = request.state == State.APPROVED
        body = self._full(request.pk, with_route=not was_decided)
        return Answer(body, 201, f"/api/v1/requests/{request.pk}/")

    def _full(self, pk: int, *, with_route: bool = True) -> dict[str, Any]:
        rows = whole(Request.objects.all(), with_route=with_route)
        return self.shown(rows.get(pk=pk), RequestSerializer)


def _starts(said: Mapping[str, Any], found: Request) -> datetime | None:
    """From when a changed request is: as it was, unless it says something else; null is at once."""
    if "starts_at" not in said:
        return found.starts_at
    return start_of(
        said["starts_at"], until=said.get("until", found.until), now=timezone.now()
    )


class ApprovalEndpoint(mixins.ListModelMixin, Endpoint):
    """What waits for the caller's decision."""

    queryset = Request.objects.none()
    serializer_class = RequestShortSerializer
    ordering = "created_at"
    asks = {"list": ApprovalQuery}

    def get_queryset(self) -> QuerySet[Request]:
        """Oldest first; never one's own."""
        user, now = self.request.user, timezone.now()
        if not user.is_authenticated:
            return Request.objects.none()
        asked = getattr(self, "asked", {})
        return listed(narrowed(Request.objects.awaiting(user, now), asked, now=now))


class PolicyEndpoint(Endpoint):
    """The rules in force."""

    serializer_class = PolicySerializer

    @extend_schema(operation_id="policy", responses=PolicySerializer)
    def list(self, call: Call) -> Response:
        """The thresholds that judge a request now."""
        version, _ = policy_in_force(timezone.now())
        return Response(PolicySerializer(version).data)


class FlavorOptionEndpoint(Endpoint):
    """Kinds of GPU for a drop-down."""

    serializer_class = OptionSerializer
    asks = {"list": FlavorOptionQuery}

    @extend_schema(operation_id="options_flavors", responses=OptionsSerializer)
    def list(self, call: Call) -> Response:
        """What a team may ask for, and why not for the rest; `value` is what a request's `flavor` takes."""
        team = get_object_or_404(
            Team.objects.visible_to(self.request.user), slug=self.asked["team"]
        )
        return Response(
            {"results": [option(choice) for choice in choices.flavors_of(team)]}
        )


def option(choice: choices.Choice) -> dict[str, Any]:
    """A line of a drop-down."""
    return {
        "value": choice.value,
        "label": choice.label,
        "disabled": bool(choice.reason),
        "reason": choice.reason,
    }


# What a line of a list shows, and what the state that people see follows from.
LINE = (
    *(
        "offering",
        "spec",
        "count",
        "approved_count",
        "cut_to",
        "approved_until",
        "cut_until",
        "gpus",
        "starts_at",
        "until",
        "purpose",
        "reason",
    ),
    *("state", "turn"),
    *(
        "usd",
        "formula",
        "content_version",
        "version",
        "created_at",
        "updated_at",
        "decided_at",
        "lapses_at",
        "answer_by",
    ),
    *("allocation", "team__name", "team__slug", "requester__name", "requester__oid"),
    *(
        "flavor__name",
        "flavor__product",
        "flavor__resource",
        "flavor__capacity_type",
        "flavor__cluster__name",
    ),
)
OF_STATE = (
    *(
        "provisioner",
        "starts_at",
        "begun_at",
        "charged_from",
        "until",
        "kept_until",
        "ended_at",
    ),
    *("end_reason", "failure", "generation"),
    *(
        "task__state",
        "task__note",
        "tenancy__created_at",
        "tenancy__is_true",
        "tenancy__cluster__reachable",
    ),
    *("tenancy__conditions", "tenancy__generation", "tenancy__observed_generation"),
    *(
        "notebook__state",
        "notebook__message",
        "notebook__created_at",
        "notebook__launched_at",
        "notebook__ready_at",
        "notebook__stopped_at",
        "notebook__ran_seconds",
    ),
    *(
        "reservation__generation",
        "reservation__observed_generation",
        "reservation__message",
    ),
    *("reservation__refused_generation", "reservation__refusal"),
    *(
        "endpoint__state",
        "endpoint__capacity",
        "endpoint__held",
        "endpoint__refused_capacity",
    ),
    *("endpoint__refusal", "endpoint__account__message"),
)


def listed(rows: Any) -> QuerySet[Request]:
    """Requests with what a line about them needs, and nothing else.

    Allocations are read by themselves: of eight tables in one query, PostgreSQL plans longer than it reads.
    """
    allocations = Allocation.objects.select_related(*MADE_BY).only(*OF_STATE)
    found: QuerySet[Request] = rows.select_related(
        "team", "requester", "flavor__cluster"
    ).only(*LINE)
    return with_votes(found.prefetch_related(Prefetch("allocation", allocations)))


def described(rows: Any) -> QuerySet[Request]:
    """Requests with all that a change of them looks at."""
    found: QuerySet[Request] = rows.with_allocation().select_related(
        "team", "requester", "flavor__cluster", "tenancy__team", "tenancy__cluster"
    )
    return found


def whole(rows: Any, *, with_route: bool = True) -> QuerySet[Request]:
    """Requests with everything about them that an answer shows; in several queries, as lists are.

    What the policy has decided as it was asked has no route, which need not be read then.
    """
    found: QuerySet[Request] = rows.select_related(
        "team", "requester", "flavor__cluster", "hold"
    ).only(
        *own_fields(Request),
        *(
            "team__name",
            "team__slug",
            "requester__name",
            "requester__oid",
            "hold__team",
        ),
        *(
            "flavor__name",
            "flavor__product",
            "flavor__resource",
            "flavor__capacity_type",
            "flavor__is_offered",
            "flavor__cluster__name",
            "flavor__cluster__title",
            "flavor__cluster__enabled",
            "flavor__cluster__delivery",
            "flavor__cluster__git_way",
            "flavor__cluster__reachable",
        ),
    )
    tenancies = Tenancy.objects.select_related("team", "cluster", "project").only(
        *own_fields(
            Tenancy, without=("spec", "objects_seen", "adopted", "used", "rendered")
        ),
        *(
            "team__name",
            "team__slug",
            "cluster__name",
            "cluster__title",
            "cluster__enabled",
            "project__slug",
        ),
    )
    allocations = Allocation.objects.select_related(*MADE_BY).only(
        *own_fields(Allocation, without=("instructions",)), *OF_STATE
    )
    evaluations = Evaluation.objects.select_related("policy").only(
        *own_fields(Evaluation, without=("inputs",)), "policy__number"
    )
    decisions = Decision.objects.select_related("by", "seat_of", "step").only(
        *own_fields(Decision), *("by__name", "by__oid", "seat_of__name", "step__seat")
    )
    steps = Step.objects.select_related("stand_in").only(
        *own_fields(Step), *("stand_in__name", "stand_in__oid")
    )
    reroutings = Rerouting.objects.select_related("policy").defer("policy__document")
    return found.prefetch_related(
        Prefetch("tenancy", tenancies),
        Prefetch("allocation", allocations),
        Prefetch("steps", steps if with_route else steps.none()),
        Prefetch("evaluations", evaluations),
        Prefetch("reroutings", reroutings if with_route else reroutings.none()),
        Prefetch("decisions", decisions),
    )


def own_fields(model: type[Model], *, without: Sequence[str] = ()) -> list[str]:
    """The names of a table's columns, but for some."""
    return [
        field.name for field in model._meta.concrete_fields if field.name not in without
    ]
