"""Profiles of notebooks over the API, as people of a team can choose them."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from notebooks.hubs.models import Hub
from notebooks.profile_desk.kept import offered
from notebooks.profiles.devcontainers import devcontainer
from workloads.choosing.page import away_of, cards_of
from workloads.choosing.repositories import address_of, vscode_link
from workloads.choosing.serializers import (
    DevContainerSerializer,
    ProfileCardsSerializer,
)
from workloads.freshness import seen_of
from workloads.runs.planning.places import open_to


class ProfileChoiceEndpoint(Endpoint):
    """Profiles of notebooks with their answers."""

    serializer_class = ProfileCardsSerializer

    @extend_schema(operation_id="place_profiles", responses=ProfileCardsSerializer)
    def list(self, call: Call, pk: int) -> Response:
        """The profiles of notebooks in a namespace of one's own team: price, and whether one would start now."""
        tenancy = next((one for one in open_to(self.caller) if one.pk == pk), None)
        if tenancy is None:
            raise NotFound
        now = timezone.now()
        hub = Hub.objects.filter(cluster=tenancy.cluster_id).first()
        away = away_of(hub, seen_of(tenancy.cluster, now), now)
        found = cards_of(tenancy, now=now, away=away)
        return Response(self.shown({"results": found}, ProfileCardsSerializer))

    @extend_schema(
        operation_id="profile_devcontainer", responses=DevContainerSerializer
    )
    def devcontainer(self, call: Call, slug: str) -> Response:
        """A development container of a profile that people can choose, with the same image."""
        found = next((one for one in offered() if one.document.slug == slug), None)
        if found is None:
            raise NotFound
        shown = {"json": devcontainer(found.document), "repository": address_of(found)}
        return Response(shown | {"vscode": vscode_link(found)})
