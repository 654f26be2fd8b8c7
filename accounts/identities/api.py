"""Applications that act as a team's pipelines, over the API."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import replay
from accounts.api import PersonSerializer, TeamNameSerializer, maker_of
from accounts.endpoints import Endpoint
from accounts.identities import actions
from accounts.models import Identity, Team
from accounts.tokens.actions import check_may_see
from accounts.tokens.models import TEAM_SCOPE_CHOICES
from web.output import OutputSerializer
from web.strict import Choice, PageQuery, StrictSerializer, Text


class IdentitySerializer(OutputSerializer[Identity]):
    """An application of Entra ID that acts as a team's pipelines; `removed_at` is since when it no longer does."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    name = serializers.CharField()
    client_id = serializers.UUIDField()
    object_id = serializers.UUIDField()
    scope = serializers.ChoiceField(choices=TEAM_SCOPE_CHOICES)
    created_at = serializers.DateTimeField()
    created_by = PersonSerializer(
        help_text="Who named it; it stays when they leave. One with `made_by` acts only while that token works."
    )
    made_by = serializers.SerializerMethodField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    removed_at = serializers.DateTimeField(allow_null=True)

    def get_made_by(self, identity: Identity) -> str | None:
        """The prefix of the token that named it, with which it ends; null for one that was named in the portal."""
        return identity.parent.prefix if identity.parent else None


class WantedIdentitySerializer(StrictSerializer):
    """Which application acts for the team."""

    name = Text(max_length=60, help_text="What signs in as it.")
    client_id = Text(
        max_length=60, help_text="The application's (client) ID in Entra ID."
    )
    object_id = Text(
        max_length=60,
        help_text="The object ID of its enterprise application (service principal), not of its app registration.",
    )
    scope = Choice(choices=TEAM_SCOPE_CHOICES)


class TeamIdentityEndpoint(mixins.ListModelMixin, Endpoint):
    """Applications that act as a team's pipelines: its leads name them, and see them, as platform leads do."""

    queryset = Identity.objects.none()
    serializer_class = IdentitySerializer
    ordering = "-created_at"
    asks = {"list": PageQuery}
    keyed = frozenset({"create"})

    def get_queryset(self) -> QuerySet[Identity]:
        """Those of the team in the address."""
        team = self._team()
        check_may_see(self.caller, team)
        rows = Identity.objects.of_team(team)
        return rows.select_related("team", "parent", "created_by")

    @extend_schema(
        request=WantedIdentitySerializer, responses={201: IdentitySerializer}
    )
    def create(self, request: Request, slug: str) -> Response:
        """Let an application of Entra ID act as the team's pipelines (its leads), by its client id and object id."""
        team, wanted = self._team(), self.body(WantedIdentitySerializer)
        return replay.answer_once(request, lambda: self._add(team, wanted))

    def _add(self, team: Team, wanted: dict[str, Any]) -> replay.Answer:
        identity = actions.add_identity(
            team=team,
            by=self.caller,
            now=timezone.now(),
            parent=maker_of(self),
            **wanted,
        )
        return replay.Answer(self.shown(identity, IdentitySerializer), 201)

    def _team(self) -> Team:
        rows = Team.objects.visible_to(self.request.user)
        return get_object_or_404(rows, slug=self.kwargs["slug"])


class IdentityEndpoint(Endpoint):
    """One of them."""

    serializer_class = IdentitySerializer
    bodyless = frozenset({"destroy"})

    def get_queryset(self) -> QuerySet[Identity]:
        """Those that the caller may remove."""
        return Identity.objects.removable_by(self.caller)

    @extend_schema(
        request=None,
        responses={204: OpenApiResponse(description="It acts for the team no more.")},
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """Let an application act no more for a team one leads, as a platform lead for any; again changes nothing."""
        actions.remove_identity(self.get_object(), by=self.caller, now=timezone.now())
        return Response(status=204)
