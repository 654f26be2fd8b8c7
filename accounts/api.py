"""Who: the caller, their teams, and their tokens."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import replay
from accounts.endpoints import Endpoint
from accounts.models import ApiToken, Membership, Team, User
from accounts.roles import HOLDERS, Role
from accounts.tokens import actions
from accounts.tokens.models import TEAM_SCOPE_CHOICES
from web.output import OutputSerializer
from web.refusals import NoRight
from web.strict import Choice, Integer, PageQuery, StrictSerializer, Text


class PersonSerializer(OutputSerializer[User]):
    """A person as others see them."""

    oid = serializers.UUIDField()
    name = serializers.CharField()


class TeamNameSerializer(OutputSerializer[Team]):
    """A team where another thing is the subject."""

    slug = serializers.CharField()
    name = serializers.CharField()


class MyTeamSerializer(OutputSerializer[Membership]):
    """One's own place in a team."""

    slug = serializers.CharField(source="team.slug")
    name = serializers.CharField(source="team.name")
    part = serializers.ChoiceField(choices=Membership.Part.choices)


class MeSerializer(OutputSerializer[User]):
    """The caller."""

    oid = serializers.UUIDField()
    name = serializers.CharField()
    username = serializers.CharField()
    email = serializers.CharField()
    roles = serializers.SerializerMethodField()
    permissions = serializers.SerializerMethodField()
    teams = MyTeamSerializer(many=True, source="memberships.all")

    def get_roles(self, user: User) -> list[str]:
        """The roles held now."""
        return sorted(Role(role).value for role in user.roles)

    def get_permissions(self, user: User) -> list[str]:
        """What the roles allow beyond being a member of teams."""
        return sorted(
            permission.value for permission in HOLDERS if user.may(permission)
        )


class TeamSerializer(TeamNameSerializer):
    """A team."""

    cost_centre = serializers.CharField()
    tier = serializers.ChoiceField(choices=Team.Tier.choices)
    entra_group = serializers.UUIDField()
    entra_group_name = serializers.CharField()
    owner = PersonSerializer(
        source="accountable", help_text="Who answers for the team."
    )
    projects = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    def get_projects(self, team: Team) -> list[str]:
        """The projects its cost is put under."""
        return sorted(project.slug for project in team.projects.all())


class MemberSerializer(OutputSerializer[Membership]):
    """Somebody's place in a team."""

    person = PersonSerializer(source="user")
    part = serializers.ChoiceField(choices=Membership.Part.choices)
    since = serializers.DateTimeField()


class TokenSerializer(OutputSerializer[ApiToken]):
    """A personal token; its prefix is all that can be seen of it."""

    prefix = serializers.CharField()
    name = serializers.CharField()
    scope = serializers.ChoiceField(choices=ApiToken.Scope.choices)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    suspended = serializers.SerializerMethodField()
    made_by = serializers.SerializerMethodField()

    def get_made_by(self, token: ApiToken) -> str | None:
        """The prefix of the token that made it, with which it ends; null for one that was made in the portal."""
        return token.parent.prefix if token.parent else None

    def get_suspended(self, token: ApiToken) -> bool:
        """Whether it was taken with its owner's access, and comes back with it."""
        return token.suspended_by_id is not None


class NewTokenSerializer(TokenSerializer):
    """A token with its secret, which is told once: null in the answer to a repeated call."""

    secret = serializers.CharField(allow_null=True)


class TeamTokenSerializer(TokenSerializer):
    """A token that acts as a team's pipelines."""

    created_by = PersonSerializer(
        allow_null=True, help_text="Who made it; it stays when they leave."
    )


class NewTeamTokenSerializer(TeamTokenSerializer):
    """One with its secret, which is told once: null in the answer to a repeated call."""

    secret = serializers.CharField(allow_null=True)


class WantedTokenSerializer(StrictSerializer):
    """What to make."""

    name = Text(max_length=60, help_text="What will use it.")
    scope = Choice(choices=ApiToken.Scope.choices)
    days = Integer(
        min_value=1,
        max_value=actions.LONGEST_TOKEN_DAYS,
        help_text="For how many days it works.",
    )


class WantedTeamTokenSerializer(WantedTokenSerializer):
    """What to make for a team's pipelines."""

    scope = Choice(choices=TEAM_SCOPE_CHOICES)


class MeEndpoint(Endpoint):
    """The caller."""

    serializer_class = MeSerializer

    @extend_schema(operation_id="me", responses=MeSerializer)
    def list(self, request: Request) -> Response:
        """Who calls, with roles, permissions and teams."""
        user = User.objects.prefetch_related("roles_held", "memberships__team").get(
            pk=self.caller.pk
        )
        return Response(self.shown(user, MeSerializer))


class TeamReadEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """The teams that the caller may see."""

    serializer_class = TeamSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"
    ordering = "name"
    asks = {"list": PageQuery, "members": PageQuery}

    def get_queryset(self) -> QuerySet[Team]:
        """One's own teams; every team for leads and auditors."""
        rows = Team.objects.visible_to(self.request.user).select_related(
            "owner", "created_by"
        )
        return rows.prefetch_related("projects")

    @extend_schema(responses=MemberSerializer(many=True))
    @action(detail=True, ordering="id")
    def members(self, request: Request, slug: str) -> Response:
        """Who is in the team."""
        team = self.get_object()
        people = team.memberships.of_people()
        page: Any = self.paginate_queryset(people.select_related("user"))
        return self.get_paginated_response(MemberSerializer(page, many=True).data)


class TokenEndpoint(mixins.ListModelMixin, Endpoint):
    """The caller's own tokens; leads revoke those of their teams, too, and platform leads everybody's."""

    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    lookup_field = "prefix"
    lookup_value_converter = "slug"
    ordering = "-created_at"
    asks = {"list": PageQuery}
    keyed = frozenset({"create"})
    bodyless = frozenset({"destroy"})
    # A token that may not decide makes none that may.

    def get_queryset(self) -> QuerySet[ApiToken]:
        """Nobody lists another's tokens; who looks after access revokes one whose prefix is known."""
        rows = ApiToken.objects.select_related("parent")
        if self.action == "destroy":
            return rows.revocable_by(self.caller)
        return rows.filter(user__pk=self.request.user.pk or 0)

    @extend_schema(request=WantedTokenSerializer, responses={201: NewTokenSerializer})
    def create(self, request: Request) -> Response:
        """Make a token; the answer holds the secret, this once."""
        wanted = self.body(WantedTokenSerializer)
        return replay.answer_once(request, lambda: self._make(wanted))

    @extend_schema(
        request=None, responses={204: OpenApiResponse(description="It is revoked.")}
    )
    def destroy(self, request: Request, prefix: str) -> Response:
        """Revoke one's own token or one of a team one leads, as a platform lead anybody's; again changes nothing."""
        actions.revoke_token(self.get_object(), by=self.caller, now=timezone.now())
        return Response(status=204)

    def _make(self, wanted: dict[str, Any]) -> replay.Answer:
        token, secret = actions.create_token(
            user=self.caller, now=timezone.now(), parent=maker_of(self), **wanted
        )
        return _told_once(self.shown(token, TokenSerializer), secret)


class TeamTokenEndpoint(mixins.ListModelMixin, Endpoint):
    """Tokens of a team's pipelines: its leads make them, and see them, as platform leads do."""

    queryset = ApiToken.objects.none()
    serializer_class = TeamTokenSerializer
    ordering = "-created_at"
    asks = {"list": PageQuery}
    keyed = frozenset({"create"})

    def get_queryset(self) -> QuerySet[ApiToken]:
        """The tokens of the team in the address."""
        team = self._team()
        actions.check_may_see(self.caller, team)
        rows = ApiToken.objects.of_team(team)
        return rows.select_related("parent", "created_by")

    @extend_schema(
        request=WantedTeamTokenSerializer, responses={201: NewTeamTokenSerializer}
    )
    def create(self, request: Request, slug: str) -> Response:
        """Make a token of the team (its leads); the answer holds the secret, this once."""
        team, wanted = self._team(), self.body(WantedTeamTokenSerializer)
        return replay.answer_once(request, lambda: self._make(team, wanted))

    def _make(self, team: Team, wanted: dict[str, Any]) -> replay.Answer:
        token, secret = actions.create_team_token(
            team=team,
            by=self.caller,
            now=timezone.now(),
            parent=maker_of(self),
            **wanted,
        )
        return _told_once(self.shown(token, TeamTokenSerializer), secret)

    def _team(self) -> Team:
        rows = Team.objects.visible_to(self.request.user)
        return get_object_or_404(rows, slug=self.kwargs["slug"])


def maker_of(endpoint: Endpoint) -> ApiToken:
    """The personal token that makes something, which ends with it; raises NoRight for one issued elsewhere."""
    if endpoint.token is None:
        raise NoRight(
            "Make this in the portal, or with a personal token.",
            code="not_with_this_token",
        )
    return endpoint.token


def _told_once(seen: dict[str, Any], secret: str) -> replay.Answer:
    return replay.Answer(seen | {"secret": secret}, 201, kept=seen | {"secret": None})
