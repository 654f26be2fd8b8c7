"""The projects of a team over the API."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.models import Team
from onboarding.projects import Place, ProjectLine, projects_of, waiting_for


class PlaceSerializer(serializers.Serializer[Place]):
    """One namespace of a project."""

    tenancy = serializers.IntegerField(source="tenancy.pk")
    namespace = serializers.CharField(source="tenancy.namespace")
    environment = serializers.CharField(source="tenancy.environment")
    cluster = serializers.CharField(source="tenancy.cluster.name")
    stage = serializers.CharField(source="tenancy.stage")
    gpus = serializers.IntegerField(help_text="GPUs that are held there now.")
    holds = serializers.ListField(
        child=serializers.CharField(), help_text="What stands there, in words."
    )
    asked_by = serializers.CharField(help_text="Empty where it is not known.")
    since = serializers.DateTimeField()


class ProjectSerializer(serializers.Serializer[ProjectLine]):
    """A project with its namespaces; `asked_by` and `since` are those of the first of them."""

    slug = serializers.CharField()
    asked_by = serializers.CharField(help_text="Empty where it is not known.")
    since = serializers.DateTimeField()
    gpus = serializers.IntegerField(
        help_text="GPUs that are held in all of its namespaces."
    )
    namespaces = PlaceSerializer(many=True, source="places")


class ProjectsSerializer(serializers.Serializer[Any]):
    """The projects of a team by name, and the requests for further namespaces that wait."""

    results = ProjectSerializer(many=True)
    waiting = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_waiting(self, found: Any) -> list[int]:
        """The ids of the requests."""
        return [request.pk for request in found["waiting"]]


class ProjectEndpoint(Endpoint):
    """What a team's projects are, where they have namespaces and what stands there."""

    serializer_class = ProjectsSerializer
    queryset = Team.objects.none()

    @extend_schema(operation_id="teams_projects", responses=ProjectsSerializer)
    def list(self, call: Call, slug: str) -> Response:
        """Every project of the team; a further one is asked for as a namespace."""
        team = get_object_or_404(Team.objects.visible_to(self.request.user), slug=slug)
        rows = {"results": projects_of(team), "waiting": waiting_for(team)}
        return Response(ProjectsSerializer(rows).data)
