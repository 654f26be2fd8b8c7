"""Hubs over the API: as platform leads connect them, and what a hub itself asks for."""

from typing import Any

import structlog
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import NotAuthenticated, NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from fleet.models import Cluster
from notebooks.hubs import actions
from notebooks.hubs.authentication import CalledByHub, HubKeyAuthentication, HubRate
from notebooks.hubs.models import Hub
from notebooks.hubs.serializers import (
    ConnectHubSerializer,
    HubDetailSerializer,
    HubKeySerializer,
    HubSerializer,
    HubsSerializer,
    SpawnableQuery,
    SpawnableSerializer,
)
from notebooks.hubs.spawnable import spawnable
from web.filtering import KnownQuery

log = structlog.get_logger(__name__)


class HubEndpoint(Endpoint):
    """The JupyterHubs of clusters, for platform leads."""

    serializer_class = HubSerializer
    lookup_field = "cluster"
    lookup_value_converter = "slug"
    keyed = frozenset({"key"})
    bodyless = frozenset({"destroy", "key"})

    @extend_schema(operation_id="hubs", responses=HubsSerializer)
    def list(self, call: Request) -> Response:
        """Every hub with what was observed of it last (platform leads)."""
        actions.require_lead(self.caller)
        return Response(
            self.shown(
                {"results": Hub.objects.select_related("cluster")}, HubsSerializer
            )
        )

    @extend_schema(responses=HubDetailSerializer)
    def retrieve(self, call: Request, cluster: str) -> Response:
        """The hub of a cluster, with what stopping idle notebooks there has freed (platform leads)."""
        return Response(self.shown(self._hub(cluster), HubDetailSerializer))

    @extend_schema(request=ConnectHubSerializer, responses=HubSerializer)
    def update(self, call: Request, cluster: str) -> Response:
        """Connect the hub of a cluster, or change how it is connected (platform leads)."""
        actions.require_lead(self.caller)
        found = Cluster.objects.filter(name=cluster).first()
        if found is None:
            raise NotFound
        values = self.body(ConnectHubSerializer)
        hub = actions.connect(found, **values, by=self.caller, now=timezone.now())
        return Response(self.shown(hub, HubSerializer))

    @extend_schema(
        request=None,
        responses={204: OpenApiResponse(description="It is disconnected.")},
    )
    def destroy(self, call: Request, cluster: str) -> Response:
        """Disconnect the hub of a cluster, on which no notebook runs (platform leads)."""
        actions.disconnect(self._hub(cluster), by=self.caller, now=timezone.now())
        return Response(status=204)

    @extend_schema(request=None, responses={201: HubKeySerializer})
    def key(self, call: Request, cluster: str) -> Response:
        """Make a new key with which the hub calls the portal; the one before ends (platform leads)."""
        hub = self._hub(cluster)
        return answer_once(call, lambda: self._make_key(hub))

    def _make_key(self, hub: Hub) -> Answer:
        hub, text = actions.make_key(hub, by=self.caller, now=timezone.now())
        seen = {"cluster": hub.cluster.name, "key_prefix": hub.key_prefix}
        return Answer(seen | {"key": text}, 201, kept=seen | {"key": None})

    def _hub(self, cluster: str) -> Hub:
        actions.require_lead(self.caller)
        found = (
            Hub.objects.select_related("cluster").filter(cluster__name=cluster).first()
        )
        if found is None:
            raise NotFound
        return found


class SpawnableEndpoint(Endpoint):
    """What a hub may start: asked by the hub itself."""

    serializer_class = SpawnableSerializer
    authentication_classes = (HubKeyAuthentication,)
    permission_classes = (CalledByHub, KnownQuery)
    throttle_classes = (HubRate,)
    asks = {"list": SpawnableQuery}

    @property
    def hub(self) -> Hub:
        """Which hub calls; raises NotAuthenticated for anybody else."""
        if not isinstance(self.request.auth, Hub):
            raise NotAuthenticated
        return self.request.auth

    @extend_schema(operation_id="hub_profiles", responses=SpawnableSerializer)
    def list(self, call: Request) -> Response:
        """KubeSpawner's profiles for one of the hub's people, when the form is shown and again at the spawn (hubs)."""
        asked: dict[str, Any] = dict(self.asked)
        server = asked.pop("server", "")
        hub = self.hub
        found = spawnable(
            hub,
            asked["username"],
            object_id=asked.get("object_id"),
            server=server,
            now=timezone.now(),
        )
        log.info(
            "profiles for a hub",
            cluster=hub.cluster.name,
            username=found.username,
            server=server,
            profiles=len(found.profiles),
            reason=found.reason,
        )
        return Response(self.shown(found, SpawnableSerializer))
