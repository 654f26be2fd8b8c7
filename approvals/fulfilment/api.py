"""What people carry out, over the API."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts import people
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from approvals.fulfilment import actions as fulfilment
from approvals.fulfilment.serializers import TaskSerializer
from manual import actions as task_actions
from manual.models import Task
from web.refusals import BadInput
from web.strict import Choice, Integer, PageQuery, QueryNumber, StrictSerializer, Text

UNFINISHED = "unfinished"


class TaskQuery(PageQuery):
    """Which tasks to list."""

    state = Choice(choices=[UNFINISHED, *Task.State.values], required=False)
    request = QueryNumber(required=False, help_text="The number of a request.")


class VersionSerializer(StrictSerializer):
    """The version that was seen; a task that has changed since is refused."""

    version = Integer(min_value=1, required=False)


class GiveSerializer(VersionSerializer):
    """To whom; null gives it to nobody again."""

    to = Text(
        max_length=254,
        allow_null=True,
        help_text="The work address of a platform lead; null for nobody.",
    )


class DoneSerializer(VersionSerializer):
    """What was done, where it is and how to reach it."""

    note = Text()


class CannotSerializer(VersionSerializer):
    """Why it cannot be carried out."""

    reason = Text(source="note")


class TaskEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """What people carry out: of one's own teams' requests, of all for leads and auditors."""

    queryset = Task.objects.none()
    serializer_class = TaskSerializer
    lookup_value_converter = "int"
    ordering = "created_at"
    asks = {"list": TaskQuery}
    keyed = versioned = frozenset({"take", "give", "done", "cannot"})

    def get_queryset(self) -> QuerySet[Task]:
        """Those of the teams that the caller may see."""
        return Task.objects.visible_to(self.request.user).described()

    def filter_queryset(self, queryset: Any) -> Any:
        """What was asked for in the address."""
        asked = getattr(self, "asked", {})
        if asked.get("state") == UNFINISHED:
            queryset = queryset.filter(state__in=[Task.State.OPEN, Task.State.TAKEN])
        elif "state" in asked:
            queryset = queryset.filter(state=asked["state"])
        if "request" in asked:
            queryset = queryset.filter(request_number=asked["request"])
        return queryset

    @extend_schema(request=VersionSerializer, responses=TaskSerializer)
    @action(detail=True, methods=["post"])
    def take(self, call: Call, pk: int) -> Response:
        """Take it oneself."""
        seen = self.body(VersionSerializer).get("version")
        return self._change(
            lambda found: task_actions.take(
                found,
                to=self.caller,
                by=self.caller,
                expected_version=seen,
                now=timezone.now(),
            )
        )

    @extend_schema(request=GiveSerializer, responses=TaskSerializer)
    @action(detail=True, methods=["post"])
    def give(self, call: Call, pk: int) -> Response:
        """Give it to another platform lead, or to nobody again."""
        said = self.body(GiveSerializer)
        to = people.by_address(said["to"]) if said["to"] else None
        if said["to"] and to is None:
            raise BadInput(
                "Nobody here has this address.", code="no_such_person", field="to"
            )
        return self._change(
            lambda found: task_actions.take(
                found,
                to=to,
                by=self.caller,
                expected_version=said.get("version"),
                now=timezone.now(),
            )
        )

    @extend_schema(request=DoneSerializer, responses=TaskSerializer)
    @action(detail=True, methods=["post"])
    def done(self, call: Call, pk: int) -> Response:
        """It is carried out."""
        return self._finish(failed=False)

    @extend_schema(request=CannotSerializer, responses=TaskSerializer)
    @action(detail=True, methods=["post"])
    def cannot(self, call: Call, pk: int) -> Response:
        """It cannot be carried out: what was set aside for it is free again."""
        return self._finish(failed=True)

    def _finish(self, *, failed: bool) -> Response:
        said = self.body(CannotSerializer if failed else DoneSerializer)
        return self._change(
            lambda found: fulfilment.finish(
                found,
                by=self.caller,
                note=said["note"],
                failed=failed,
                expected_version=said.get("version"),
                now=timezone.now(),
            )
        )

    def _change(self, change: Any) -> Response:
        found: int = self.get_object().pk

        def effect() -> Answer:
            change(found)
            return Answer(
                self.shown(
                    get_object_or_404(Task.objects.described(), pk=found),
                    TaskSerializer,
                )
            )

        return answer_once(self.request, effect)
