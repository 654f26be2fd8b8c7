"""A cluster's queues over the API."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from fleet.models import Cluster
from workloads.api import SeenSerializer, SlicesField
from workloads.queue_board import queues_of_cluster


class RoomSerializer(serializers.Serializer[Any]):
    """What is free of a flavor on the nodes."""

    flavor = serializers.CharField()
    free = serializers.IntegerField(
        help_text="GPUs that are free on all its nodes together."
    )
    largest = serializers.IntegerField(
        help_text="The most GPUs that a single pod gets now: one node's."
    )


class QueueShareSerializer(serializers.Serializer[Any]):
    """What a queue has of one flavor."""

    flavor = serializers.CharField()
    guaranteed = serializers.IntegerField()
    held = serializers.IntegerField()
    borrowed = serializers.IntegerField(
        help_text="Held beyond what is guaranteed: others may call it back."
    )


class QueueHolderSerializer(serializers.Serializer[Any]):
    """A job that holds GPUs."""

    kind = serializers.CharField(source="key.kind")
    name = serializers.CharField(source="key.name")
    gpus = serializers.DictField(
        child=serializers.IntegerField(), help_text="By flavor."
    )
    priority = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True)
    may_be_stopped = serializers.BooleanField(
        help_text="Whether it stops once others call back everything that its queue borrowed."
    )
    pods = serializers.IntegerField(
        help_text="Its pods, with those that are yet to be made."
    )
    pods_on_nodes = serializers.IntegerField(
        source="on_nodes",
        help_text="Those of them that are on a node: the others have its queue's word for their GPUs alone.",
    )


class QueueWaiterSerializer(serializers.Serializer[Any]):
    """A job that waits."""

    position = serializers.IntegerField(
        allow_null=True,
        help_text="1 is the head of the line of its queue; null for one in no line, which does not start as it is.",
    )
    kind = serializers.CharField(source="key.kind")
    name = serializers.CharField(source="key.name")
    gpus = serializers.IntegerField()
    slices = SlicesField(help_text="Those of them that are MIG slices, by profile.")
    priority = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True)
    fits = serializers.BooleanField(
        help_text="False for one that asks for more than its queue has as it is: until that changes, it does not start."
    )


class TeamQueueLineSerializer(serializers.Serializer[Any]):
    """The queue of one of a team's namespaces."""

    team = TeamNameSerializer()
    namespace = serializers.CharField()
    shares = QueueShareSerializer(source="line.shares", many=True)
    running = QueueHolderSerializer(source="line.running", many=True)
    waiting = QueueWaiterSerializer(source="line.waiting", many=True)
    oldest_wait_since = serializers.DateTimeField(source="line.oldest", allow_null=True)


class OtherQueuesSerializer(serializers.Serializer[Any]):
    """What teams that the caller may not see have and want, in sums."""

    queues = serializers.IntegerField()
    running = serializers.IntegerField(help_text="Jobs that hold GPUs.")
    held = serializers.IntegerField(help_text="GPUs and slices that they hold.")
    borrowed = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="Jobs that wait.")
    wanted = serializers.IntegerField(help_text="GPUs and slices that they wait for.")
    oldest_wait_since = serializers.DateTimeField(source="oldest", allow_null=True)


class ClusterQueuesSerializer(serializers.Serializer[Any]):
    """Everything that runs and waits on a cluster, as far as the caller may know it."""

    seen = SeenSerializer()
    free = RoomSerializer(source="rooms", many=True)
    teams = TeamQueueLineSerializer(many=True)
    others = OtherQueuesSerializer()


class QueueEndpoint(Endpoint):
    """Who runs and who waits on a cluster."""

    queryset = Cluster.objects.all()
    serializer_class = ClusterQueuesSerializer
    lookup_field = "name"
    lookup_value_converter = "slug"

    @extend_schema(operation_id="queues_of_cluster", responses=ClusterQueuesSerializer)
    def retrieve(self, request: Request, name: str) -> Response:
        """A cluster's queues: jobs of teams that the caller may see by name, all others as sums.

        Told from the portal's own copy, which is kept by watches: no cluster is asked.
        """
        found = queues_of_cluster(self.get_object(), by=self.caller, now=timezone.now())
        return Response(self.shown(found, ClusterQueuesSerializer))
