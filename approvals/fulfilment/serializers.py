"""How the API shows what people carry out."""

from rest_framework import serializers

from accounts.api import PersonSerializer, TeamNameSerializer
from manual.models import Task
from web.output import OutputSerializer


class TaskSerializer(OutputSerializer[Task]):
    """Something a person carries out: for an approved request, or for a tenancy that is to be set apart."""

    id = serializers.IntegerField()
    request = serializers.IntegerField(source="request_number", allow_null=True)
    tenancy = serializers.IntegerField(source="tenancy_id", allow_null=True)
    team = TeamNameSerializer()
    requester = PersonSerializer(source="wanted_by")
    offering = serializers.SerializerMethodField()
    kind = serializers.ChoiceField(choices=Task.Kind.choices)
    title = serializers.CharField(
        source="words", help_text="What it is in a few words."
    )
    to_do = serializers.CharField(
        source="instruction", help_text="What to do, in a sentence."
    )
    state = serializers.ChoiceField(choices=Task.State.choices)
    assignee = PersonSerializer(allow_null=True)
    note = serializers.CharField(help_text="What was done, or why it could not be.")
    version = serializers.IntegerField()
    until = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Until when it should be carried out; then it is asked after.",
    )
    reminded_at = serializers.DateTimeField(allow_null=True)
    escalate_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When engineering leadership is told that it is late.",
    )
    escalated_at = serializers.DateTimeField(allow_null=True)
    taken_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True)

    def get_offering(self, task: Task) -> str | None:
        """The key of the catalogue; null for a subscription."""
        return task.offering or None
