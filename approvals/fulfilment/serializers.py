"""How the API shows what people carry out."""

from rest_framework import serializers

from accounts.api import PersonSerializer
from approvals.fulfilment.page import title
from approvals.fulfilment.words import sentence
from approvals.models import Task


class TaskSerializer(serializers.Serializer[Task]):
    """Something a person carries out: for an approved request, or for a tenancy that is to be set apart."""

    id = serializers.IntegerField()
    request = serializers.IntegerField(source="request_id", allow_null=True)
    tenancy = serializers.IntegerField(source="tenancy_id", allow_null=True)
    team = serializers.CharField(source="team.slug")
    requester = PersonSerializer(source="asker")
    offering = serializers.CharField(source="request.offering", allow_null=True, default=None)
    kind = serializers.ChoiceField(choices=Task.Kind.choices)
    title = serializers.SerializerMethodField()
    to_do = serializers.SerializerMethodField()
    state = serializers.ChoiceField(choices=Task.State.choices)
    assignee = PersonSerializer(allow_null=True)
    note = serializers.CharField(help_text="What was done, or why it could not be.")
    version = serializers.IntegerField()
    until = serializers.DateTimeField(source="request.until", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="Until when it should be carried out; then it is asked after."
    )
    reminded_at = serializers.DateTimeField(allow_null=True)
    escalate_at = serializers.DateTimeField(
        allow_null=True, help_text="When engineering leadership is told that it is late."
    )
    escalated_at = serializers.DateTimeField(allow_null=True)
    taken_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True)

    def get_title(self, task: Task) -> str:
        """What it is in a few words."""
        return title(task)

    def get_to_do(self, task: Task) -> str:
        """What to do, in a sentence."""
        return sentence(task)
