"""Many ends at once, over the API."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import PersonSerializer
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from accounts.roles import Permission
from allocations.ends import sweep as ending
from allocations.models import Brake
from web.refusals import NoRight
from web.strict import PageQuery, StrictSerializer


class BrakeSerializer(serializers.Serializer[Brake]):
    """Ends that wait for a platform lead, because `due` of `live` holdings would have ended at `clock`."""

    id = serializers.IntegerField()
    clock = serializers.DateTimeField()
    due = serializers.IntegerField()
    live = serializers.IntegerField()
    answer = serializers.ChoiceField(choices=["", *Brake.Answer.values])
    answered_at = serializers.DateTimeField(allow_null=True)
    answered_by = PersonSerializer(allow_null=True)


class EmptySerializer(StrictSerializer):
    """An empty object."""


class BrakeEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """Ends that are or were held back, for platform leads."""

    queryset = Brake.objects.none()
    serializer_class = BrakeSerializer
    lookup_value_converter = "int"
    ordering = "-id"
    asks = {"list": PageQuery}
    keyed = frozenset({"confirm", "dismiss"})
    bodyless = frozenset({"confirm", "dismiss"})

    def get_queryset(self) -> QuerySet[Brake]:
        """All of them; raises NoRight for others than platform leads."""
        if not self.caller.may(Permission.MANAGE_BUDGETS):
            raise NoRight(
                "Platform leads let many holdings end at once.",
                code="not_a_platform_lead",
            )
        return Brake.objects.select_related("answered_by")

    @extend_schema(request=EmptySerializer, responses=BrakeSerializer)
    @action(detail=True, methods=["post"])
    def confirm(self, request: Request, pk: int) -> Response:
        """Say that the clock is right: everything that was due ends."""
        return self._answer(ending.confirm)

    @extend_schema(request=EmptySerializer, responses=BrakeSerializer)
    @action(detail=True, methods=["post"])
    def dismiss(self, request: Request, pk: int) -> Response:
        """Say that the clock was wrong: nothing ends by it."""
        return self._answer(ending.dismiss)

    def _answer(self, say: Any) -> Response:
        self.body(EmptySerializer)
        found: int = self.get_object().pk
        return answer_once(
            self.request,
            lambda: Answer(
                self.shown(
                    say(found, by=self.caller, now=timezone.now()), BrakeSerializer
                )
            ),
        )
