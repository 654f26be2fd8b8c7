"""Versions and drafts of the policy over the API, and the policy as YAML."""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.directory import freshness
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from accounts.roles import Permission
from approvals.judging.inputs import policy_in_force
from approvals.policy_desk import actions as policy_actions
from approvals.policy_desk import simulator
from approvals.policy_desk.forms import USUAL_DAYS
from approvals.policy_desk.serializers import (
    ActivateSerializer,
    CancelSerializer,
    DraftQuery,
    NewPolicyDraftSerializer,
    PolicyDifferencesSerializer,
    PolicyDocumentSerializer,
    PolicyDraftSerializer,
    PolicyVersionSerializer,
    PolicyYamlInSerializer,
    PolicyYamlSerializer,
    SimulateSerializer,
    SimulationSerializer,
    YamlQuery,
    simulation_shown,
)
from approvals.versions import seen_version
from policy.differences import differences
from policy.document import write
from policy.models import PolicyDraft, PolicyVersion
from web.refusals import NoRight
from web.strict import PageQuery, with_places


class ReadersOnly(Endpoint):
    """What leads and auditors see, and nobody else."""

    def initial(self, request: Call, *args: Any, **kwargs: Any) -> None:
        """Raises NoRight before anything is looked up, so that nothing is learned from the answer."""
        super().initial(request, *args, **kwargs)
        if not self.caller.may(Permission.SEE_POLICY_DRAFTS):
            raise NoRight(
                "Leads and auditors see drafts and the history of the policy.",
                code="not_a_reader",
            )


class VersionEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, ReadersOnly):
    """Every policy there was."""

    queryset = PolicyVersion.objects.select_related(
        "proposed_by", "activated_by", "cancellation__by"
    )
    serializer_class = PolicyVersionSerializer
    lookup_field = "number"
    lookup_value_converter = "int"
    ordering = "-number"
    asks = {"list": PageQuery}
    keyed = frozenset({"cancel"})

    @extend_schema(request=CancelSerializer, responses=PolicyVersionSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, call: Call, number: int) -> Response:
        """Have a policy that is to come later not come (platform leads, engineering leadership)."""
        values, found = self.body(CancelSerializer), self.get_object()
        freshness.renew(self.caller, now=timezone.now())

        def effect() -> Answer:
            done = policy_actions.cancel(
                found.number, by=self.caller, now=timezone.now(), **values
            )
            return Answer(self.shown(done, PolicyVersionSerializer))

        return answer_once(call, effect)


class DraftEndpoint(mixins.ListModelMixin, ReadersOnly):
    """Policies that are being written; one person writes a draft, another puts it in force."""

    queryset = PolicyDraft.objects.select_related("base", "author", "became")
    serializer_class = PolicyDraftSerializer
    lookup_value_converter = "int"
    ordering = "-updated_at"
    asks = {"list": DraftQuery}
    keyed = frozenset({"create", "activate", "take_over", "hand_in"})
    bodyless = frozenset({"destroy", "take_over", "hand_in"})
    guarded = frozenset({"partial_update", "activate", "take_over", "hand_in"})

    def filter_queryset(self, queryset: Any) -> Any:
        """Open or closed ones, if it was asked for."""
        wanted = getattr(self, "asked", {}).get("open")
        return (
            queryset
            if wanted is None
            else queryset.filter(closed_at__isnull=wanted == "true")
        )

    @extend_schema(responses=PolicyDraftSerializer)
    def retrieve(self, call: Call, pk: int) -> Response:
        """One draft; send its ETag as If-Match to change it."""
        return self._shown(self.get_object())

    @extend_schema(
        request=NewPolicyDraftSerializer, responses={201: PolicyDraftSerializer}
    )
    def create(self, call: Call) -> Response:
        """Begin a draft (platform leads)."""
        return answer_once(
            call, lambda: _made(self, self.body(NewPolicyDraftSerializer))
        )

    @extend_schema(request=PolicyDocumentSerializer, responses=PolicyDraftSerializer)
    def partial_update(self, call: Call, pk: int) -> Response:
        """Write other values into one's own draft."""
        body, seen = self.body(PolicyDocumentSerializer), seen_version(call)
        values = {"said": _said(body), "why": body.get("why")}
        found = with_places(
            _field_of(body),
            lambda: policy_actions.change(
                self.get_object().pk,
                by=self.caller,
                expected_version=seen,
                now=timezone.now(),
                **values,
            ),
        )
        return self._shown(found)

    @extend_schema(
        request=None, responses={204: OpenApiResponse(description="It is thrown away.")}
    )
    def destroy(self, call: Call, pk: int) -> Response:
        """Throw a draft away (platform leads)."""
        policy_actions.discard(self.get_object().pk, by=self.caller, now=timezone.now())
        return Response(status=204)

    @extend_schema(request=None, responses=PolicyDraftSerializer)
    @action(detail=True, methods=["post"], url_path="take-over")
    def take_over(self, call: Call, pk: int) -> Response:
        """Put one's own draft on the newest version; what it changes stays."""
        return self._changed(call, policy_actions.take_over)

    @extend_schema(request=None, responses=PolicyDraftSerializer)
    @action(detail=True, methods=["post"], url_path="hand-in")
    def hand_in(self, call: Call, pk: int) -> Response:
        """Ask everybody else who may to put one's own draft in force."""
        return self._changed(call, policy_actions.hand_in)

    @extend_schema(request=ActivateSerializer, responses=PolicyVersionSerializer)
    @action(detail=True, methods=["post"])
    def activate(self, call: Call, pk: int) -> Response:
        """Put a draft in force; never its author, and never a token that only asks."""
        values, found, seen = (
            self.body(ActivateSerializer),
            self.get_object(),
            seen_version(call),
        )
        freshness.renew(self.caller, now=timezone.now())

        def effect() -> Answer:
            made = policy_actions.activate(
                found.pk,
                by=self.caller,
                expected_version=seen,
                now=timezone.now(),
                **values,
            )
            return Answer(self.shown(made, PolicyVersionSerializer))

        return answer_once(call, effect)

    @extend_schema(request=SimulateSerializer, responses=SimulationSerializer)
    @action(detail=True, methods=["post"])
    def simulate(self, call: Call, pk: int) -> Response:
        """What the draft would have decided; nothing is changed."""
        policy, days = (
            self.get_object().policy,
            self.body(SimulateSerializer).get("days", USUAL_DAYS),
        )
        found = simulator.simulate(
            policy, days=days, now=timezone.now(), who=self.caller
        )
        return Response(
            simulation_shown(
                found, simulator.warnings(policy, found.past), simulator.CANNOT_KNOW
            )
        )

    @extend_schema(responses=PolicyDifferencesSerializer)
    @action(detail=True)
    def diff(self, call: Call, pk: int) -> Response:
        """What the draft changes of the version it was begun on."""
        found = self.get_object()
        lines = [
            each._asdict() for each in differences(found.base.policy, found.policy)
        ]
        return Response({"base": found.base.number, "differences": lines})

    def _changed(self, call: Call, change: Callable[..., PolicyDraft]) -> Response:
        found, seen = self.get_object(), seen_version(call)

        def effect() -> Answer:
            done = change(
                found.pk, by=self.caller, expected_version=seen, now=timezone.now()
            )
            return Answer(self.shown(done, PolicyDraftSerializer))

        return answer_once(call, effect)

    def _shown(self, found: PolicyDraft) -> Response:
        return Response(
            self.shown(found, PolicyDraftSerializer),
            headers={"ETag": f'"{found.version}"'},
        )


class YamlEndpoint(Endpoint):
    """The policy as YAML, for keeping it in Git."""

    serializer_class = PolicyYamlSerializer
    asks = {"list": YamlQuery}
    keyed = frozenset({"update"})

    @extend_schema(
        operation_id="policy_yaml",
        responses={
            (200, "application/json"): PolicyYamlSerializer,
            (200, "text/yaml"): str,
        },
    )
    def list(self, call: Call) -> Response | HttpResponse:
        """The version in force, or any version for who may see them; plain YAML with `Accept: text/yaml`."""
        found, _ = policy_in_force(timezone.now())
        wanted = self.asked.get("version", found.number)
        if wanted != found.number:
            if not self.caller.may(Permission.SEE_POLICY_DRAFTS):
                raise NoRight(
                    "Leads and auditors see the history of the policy.",
                    code="not_a_reader",
                )
            found = get_object_or_404(PolicyVersion, number=wanted)
        text = write(found.policy)
        if "text/yaml" in call.headers.get("Accept", ""):
            return HttpResponse(text, content_type="text/yaml; charset=utf-8")
        return Response({"number": found.number, "yaml": text})

    @extend_schema(
        operation_id="policy_yaml_put",
        request=PolicyYamlInSerializer,
        responses={201: PolicyDraftSerializer},
    )
    def update(self, call: Call) -> Response:
        """Make a draft of a policy as YAML (platform leads); somebody else puts it in force."""
        return answer_once(call, lambda: _made(self, self.body(PolicyYamlInSerializer)))


def _made(endpoint: Endpoint, body: dict[str, Any]) -> Answer:
    values = {"base": body.get("base"), "said": _said(body), "why": body.get("why", "")}
    made = with_places(
        _field_of(body),
        lambda: policy_actions.draft(by=endpoint.caller, now=timezone.now(), **values),
    )
    return Answer(
        endpoint.shown(made, PolicyDraftSerializer),
        201,
        f"/api/v1/policy/drafts/{made.pk}/",
    )


def _said(body: dict[str, Any]) -> Any:
    return body.get("yaml", body.get("document"))


def _field_of(body: dict[str, Any]) -> str:
    return "yaml" if "yaml" in body else "document"
