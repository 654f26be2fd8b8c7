"""The API as a whole: its root, its description, and the addresses of everything in it."""

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import path, resolve
from django.views.decorators.http import require_safe
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from accounts.api import MeEndpoint, TeamTokenEndpoint, TokenEndpoint
from accounts.cost_centres.api import CostCentreEndpoint
from accounts.directory.api import AccessLossEndpoint, DirectoryEndpoint
from accounts.identities.api import IdentityEndpoint, TeamIdentityEndpoint
from allocations.api import AllocationEndpoint
from allocations.budgets.api import BudgetEndpoint, LedgerEndpoint
from allocations.ends.api import BrakeEndpoint
from approvals.decisions.bulk_api import (
    DecisionEndpoint,
    EffectEndpoint,
    StatisticsEndpoint,
)
from approvals.fulfilment.api import TaskEndpoint
from approvals.policy_desk.api import DraftEndpoint, VersionEndpoint, YamlEndpoint
from approvals.requests.api import (
    ApprovalEndpoint,
    FlavorOptionEndpoint,
    PolicyEndpoint,
    RequestEndpoint,
)
from approvals.shares.api import ShareEndpoint
from approvals.stand_ins.api import DelegationEndpoint
from catalogue.api import OfferingEndpoint
from fleet.api import ClusterEndpoint, FlavorEndpoint
from insights.capacity.api import LimitEndpoint
from insights.capacity.increases_api import LimitIncreaseEndpoint, QuotaIncreaseEndpoint
from insights.capacity.subscriptions_api import SubscriptionEndpoint
from insights.costs.api import CostEndpoint
from insights.failed_runs.api import FailedRunsEndpoint
from insights.model_endpoints.api import ModelEndpointEndpoint
from insights.prices.api import PriceEndpoint
from insights.quota_chain.api import ChainEndpoint
from insights.reservations.api import OrphanEndpoint, ReservationEndpoint
from insights.utilisation.api import UtilisationEndpoint
from notebooks.hubs.api import HubEndpoint, SpawnableEndpoint
from notebooks.profile_desk.api import ProfileEndpoint, ProfileYamlEndpoint
from notices.api import DeliveryEndpoint, NoticeSettingsEndpoint
from notices.channels.api import ChannelEndpoint
from offboarding.api import DepartureEndpoint, ProtectionEndpoint
from onboarding.api import GroupEndpoint, TeamEndpoint
from onboarding.projects_api import ProjectEndpoint
from portal.api_audit import EventEndpoint
from portal.http.problem_codes import CODES
from portal.http.problems import SlashMissing
from provisioning.api import TenancyEndpoint
from provisioning.drift.api import DriftEndpoint, RepairBrakeEndpoint
from workloads.api import WorkEndpoint
from workloads.choosing.api import ProfileChoiceEndpoint
from workloads.notebook_pages.api import NotebookEndpoint
from workloads.queue_api import QueueEndpoint
from workloads.runs.api import PlaceEndpoint, RunEndpoint
from workloads.service_levels.api import ServiceLevelEndpoint
from workloads.template_desk.api import TemplateEndpoint, TemplateYamlEndpoint

VERSION_1 = "/api/v1/"
_describing = threading.Lock()
KINDS = (
    "me",
    "teams",
    "directory/groups",
    "tenancies",
    "requests",
    "approvals",
    "decisions",
    "decisions/effect",
    "decisions/statistics",
    "allocations",
    "clusters",
    "flavors",
    "limits",
    "costs",
    "utilisation",
    "failed-runs",
    "service-levels",
    "prices",
    "model-endpoints",
    "reservations",
    "reservations/orphans",
    "quota-increases",
    "subscriptions",
    "options/flavors",
    "policy",
    "policy/versions",
    "policy/drafts",
    "policy/yaml",
    "events",
    "tokens",
    "delegations",
    "notice-settings",
    "channels",
    "deliveries",
    "offerings",
    "tasks",
    "departures",
    "drift",
    "directory",
    "directory/losses",
    "expiry-brakes",
    "cost-centres",
    "runs",
    "notebooks",
    "places",
    "templates",
    "templates/yaml",
    "profiles",
    "profiles/yaml",
    "hubs",
)

router = SimpleRouter(use_regex_path=False)
router.register("me", MeEndpoint, basename="me")
router.register("teams", TeamEndpoint, basename="team")
router.register("directory", DirectoryEndpoint, basename="directory")
router.register("cost-centres", CostCentreEndpoint, basename="cost-centre")
router.register("directory/groups", GroupEndpoint, basename="group")
router.register("directory/losses", AccessLossEndpoint, basename="access-loss")
router.register("work", WorkEndpoint, basename="work")
router.register("queues", QueueEndpoint, basename="queue")
router.register("runs", RunEndpoint, basename="run")
router.register("notebooks", NotebookEndpoint, basename="notebook")
router.register("places", PlaceEndpoint, basename="place")
router.register("templates", TemplateEndpoint, basename="template")
router.register("profiles", ProfileEndpoint, basename="profile")
router.register("hubs", HubEndpoint, basename="hub")
router.register("tenancies", TenancyEndpoint, basename="tenancy")
router.register("requests", RequestEndpoint, basename="request")
router.register("approvals", ApprovalEndpoint, basename="approval")
router.register("decisions", DecisionEndpoint, basename="decision")
router.register("decisions/effect", EffectEndpoint, basename="effect")
router.register(
    "decisions/statistics", StatisticsEndpoint, basename="decision-statistics"
)
router.register("allocations", AllocationEndpoint, basename="allocation")
router.register("clusters", ClusterEndpoint, basename="cluster")
router.register("drift", DriftEndpoint, basename="drift")
router.register("expiry-brakes", BrakeEndpoint, basename="expiry-brake")
router.register("quota-chains", ChainEndpoint, basename="quota-chain")
router.register("limits", LimitEndpoint, basename="limit")
router.register("costs", CostEndpoint, basename="cost")
router.register("utilisation", UtilisationEndpoint, basename="utilisation")
router.register("failed-runs", FailedRunsEndpoint, basename="failed-run")
router.register("service-levels", ServiceLevelEndpoint, basename="service-level")
router.register("prices", PriceEndpoint, basename="price")
router.register("model-endpoints", ModelEndpointEndpoint, basename="model-endpoint")
router.register("reservations/orphans", OrphanEndpoint, basename="orphan")
router.register("reservations", ReservationEndpoint, basename="reservation")
router.register("quota-increases", QuotaIncreaseEndpoint, basename="quota-increase")
router.register("subscriptions", SubscriptionEndpoint, basename="subscription")
router.register("flavors", FlavorEndpoint, basename="flavor")
router.register("options/flavors", FlavorOptionEndpoint, basename="flavor-option")
router.register("policy", PolicyEndpoint, basename="policy")
router.register("policy/versions", VersionEndpoint, basename="policy-version")
router.register("policy/drafts", DraftEndpoint, basename="policy-draft")
router.register("channels", ChannelEndpoint, basename="channel")
router.register("deliveries", DeliveryEndpoint, basename="delivery")
router.register("offerings", OfferingEndpoint, basename="offering")
router.register("tasks", TaskEndpoint, basename="task")
router.register("departures", DepartureEndpoint, basename="departure")
router.register("events", EventEndpoint, basename="event")
router.register("tokens", TokenEndpoint, basename="token")
router.register("delegations", DelegationEndpoint, basename="delegation")

nested = [
    path(
        "limits/<int:pk>/increases/",
        LimitIncreaseEndpoint.as_view({"post": "create"}),
        name="limit-increases",
    ),
    path(
        "clusters/<slug:name>/release-brake/",
        RepairBrakeEndpoint.as_view({"post": "release"}),
        name="cluster-release-brake",
    ),
    path(
        "templates/yaml/",
        TemplateYamlEndpoint.as_view({"get": "list", "put": "update"}),
        name="templates-yaml",
    ),
    path(
        "templates/<slug:slug>/take-back/",
        TemplateEndpoint.as_view({"post": "take_back"}),
        name="template-take-back",
    ),
    path(
        "profiles/yaml/",
        ProfileYamlEndpoint.as_view({"get": "list", "put": "update"}),
        name="profiles-yaml",
    ),
    *(
        path(
            f"profiles/<slug:slug>/{name}/",
            ProfileEndpoint.as_view({"post": name}),
            name=f"profile-{name}",
        )
        for name in ("publish", "deprecate", "retire")
    ),
    path(
        "profiles/<slug:slug>/devcontainer/",
        ProfileChoiceEndpoint.as_view({"get": "devcontainer"}),
        name="profile-devcontainer",
    ),
    path(
        "places/<int:pk>/notebooks/",
        NotebookEndpoint.as_view({"post": "launch"}),
        name="place-notebooks",
    ),
    path(
        "places/<int:pk>/profiles/",
        ProfileChoiceEndpoint.as_view({"get": "list"}),
        name="place-profiles",
    ),
    path(
        "hubs/<slug:cluster>/key/", HubEndpoint.as_view({"post": "key"}), name="hub-key"
    ),
    path(
        "hub/profiles/", SpawnableEndpoint.as_view({"get": "list"}), name="hub-profiles"
    ),
    path(
        "policy/yaml/",
        YamlEndpoint.as_view({"get": "list", "put": "update"}),
        name="policy-yaml",
    ),
    path(
        "offerings/<slug:key>/options/",
        OfferingEndpoint.as_view({"get": "options_of"}),
        name="offering-options",
    ),
    path(
        "notice-settings/",
        NoticeSettingsEndpoint.as_view({"get": "list", "patch": "change"}),
        name="notice-settings",
    ),
    path(
        "notice-settings/test/",
        NoticeSettingsEndpoint.as_view({"post": "test"}),
        name="notice-settings-test",
    ),
    path(
        "teams/<slug:slug>/budgets/",
        BudgetEndpoint.as_view({"get": "list"}),
        name="budgets",
    ),
    path(
        "teams/<slug:slug>/budgets/<str:month>/",
        BudgetEndpoint.as_view({"put": "update"}),
        name="budget",
    ),
    path(
        "teams/<slug:slug>/budgets/<str:month>/ledger/",
        LedgerEndpoint.as_view({"get": "list"}),
        name="ledger",
    ),
    path(
        "tenancies/<int:pk>/protection/",
        ProtectionEndpoint.as_view({"put": "update"}),
        name="tenancy-protection",
    ),
    path(
        "tenancies/<int:pk>/shares/",
        ShareEndpoint.as_view({"get": "show", "patch": "change"}),
        name="tenancy-shares",
    ),
    path(
        "teams/new/preview/",
        TeamEndpoint.as_view({"post": "preview"}),
        name="team-preview",
    ),
    path(
        "teams/<slug:slug>/change-preview/",
        TeamEndpoint.as_view({"post": "preview_change"}),
        name="team-change-preview",
    ),
    path(
        "teams/<slug:slug>/projects/",
        ProjectEndpoint.as_view({"get": "list"}),
        name="projects",
    ),
    path(
        "teams/<slug:slug>/tokens/",
        TeamTokenEndpoint.as_view({"get": "list", "post": "create"}),
        name="tokens-of-team",
    ),
    path(
        "teams/<slug:slug>/identities/",
        TeamIdentityEndpoint.as_view({"get": "list", "post": "create"}),
        name="identities-of-team",
    ),
    path(
        "identities/<int:pk>/",
        IdentityEndpoint.as_view({"delete": "destroy"}),
        name="identity",
    ),
    path(
        "teams/<slug:slug>/images/look-again/",
        TeamEndpoint.as_view({"post": "look_again_at_images"}),
        name="team-images-look-again",
    ),
    path(
        "teams/<slug:slug>/onboarding/",
        TeamEndpoint.as_view({"get": "onboarding"}),
        name="onboarding",
    ),
]


class RootSerializer(serializers.Serializer[Any]):
    """Where everything is."""

    description = serializers.CharField()
    documentation = serializers.CharField()
    problems = serializers.CharField()
    v1 = serializers.DictField(child=serializers.CharField())


class Open(APIView):
    """An address for everybody, which is why it says nothing that is not public."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = ()


class Root(Open):
    """The entrance."""

    @extend_schema(operation_id="root", responses=RootSerializer, tags=["api"])
    def get(self, request: Request) -> Response:
        """Links to everything."""
        links = {kind.replace("/", "_"): f"{VERSION_1}{kind}/" for kind in KINDS}
        return Response(
            {
                "description": "/api/schema/",
                "documentation": "/api/docs/",
                "problems": "/api/problems",
                "v1": links,
            }
        )


class Description(SpectacularAPIView):
    """The OpenAPI description, for everybody; the same for all of them, so it is made once in the life of a process."""

    permission_classes = [AllowAny]
    throttle_classes = []

    def _get_schema_response(self, request: Request) -> HttpResponse:
        """As YAML; what stands behind the question mark changes nothing."""
        return HttpResponse(
            _described(),
            content_type=OpenApiYamlRenderer.media_type,
            headers={"Content-Disposition": 'inline; filename="quartermaster.yaml"'},
        )


def description() -> Mapping[str, Any]:
    """The OpenAPI description; walking every endpoint takes a second or two of a processor, once in a process."""
    # Two walks at a time fail: drf-spectacular loads its extensions as it goes.
    with _describing:
        return _walked()


@cache
def _walked() -> Mapping[str, Any]:
    described: Mapping[str, Any] = Description.generator_class().get_schema(public=True)  # type: ignore[no-untyped-call]
    return described


@cache
def _described() -> bytes:
    text: bytes | str = OpenApiYamlRenderer().render(description())  # type: ignore[no-untyped-call]
    return text if isinstance(text, bytes) else text.encode()


class Documentation(SpectacularSwaggerSplitView):
    """Swagger UI; its script comes from an address of its own, so that the policy against inline code holds."""

    template_name = "portal/api_docs.html"

    permission_classes = [AllowAny]
    throttle_classes = []


@extend_schema(exclude=True)
class NoSuchAddress(APIView):
    """Every address under /api/ that is none; one that lacks its last slash leads to the one that has it."""

    schema = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Lead whoever reads to the address with its slash; nothing that is sent is repeated there."""
        if request.method in ("GET", "HEAD") and _lacks_slash(request.path):
            return HttpResponsePermanentRedirect(
                request.get_full_path(force_append_slash=True)
            )
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Signed in or not, by whatever method: there is nothing here."""
        raise SlashMissing(request.path) if _lacks_slash(request.path) else NotFound


def _lacks_slash(path: str) -> bool:
    return not path.endswith("/") and resolve(f"{path}/").url_name != "api-nothing"


@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    """What each code of a problem means; the `type` of every problem leads here."""
    return render(request, "portal/problems.html", {"codes": sorted(CODES.items())})
