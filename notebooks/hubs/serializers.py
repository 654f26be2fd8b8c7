"""How the API shows hubs and what they may start, and what it takes for them."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import PersonSerializer
from notebooks.hubs.connections import LONGEST_ADDRESS
from notebooks.hubs.models import Hub, UnknownReason
from notebooks.hubs.page import exempt_on, idle_unknown_on
from notebooks.hubs.spawnable import Spawnable
from notebooks.profiles.idle import Reclaim
from notebooks.servers.savings import Saved, saved_on
from web.strict import Choice, StrictSerializer, Text

LONGEST_NAME = 255
RECLAIMS = [(each.value, each.words) for each in Reclaim]


class HubSerializer(serializers.Serializer[Hub]):
    """The JupyterHub of a cluster; neither its token nor its key is shown."""

    cluster = serializers.CharField(source="cluster.name")
    address = serializers.CharField()
    public_address = serializers.CharField(
        help_text="Where people open it; empty where that is the address itself."
    )
    token_file = serializers.CharField()
    reclaim = serializers.ChoiceField(choices=RECLAIMS)
    key_prefix = serializers.CharField(
        help_text="The beginning of its key after qmh_; empty without one."
    )
    key_made_at = serializers.DateTimeField(allow_null=True)
    reachable = serializers.BooleanField(
        allow_null=True,
        help_text="Whether the portal can work with it; null until a worker has observed it.",
    )
    message = serializers.CharField(help_text="Why it cannot.")
    version = serializers.CharField(help_text="As it was known last; empty until then.")
    looked_at = serializers.DateTimeField(allow_null=True)


class SavedSerializer(serializers.Serializer[Saved]):
    """What stopping idle notebooks has freed for others, and what that is worth."""

    since = serializers.DateTimeField()
    stops = serializers.IntegerField()
    gpu_hours = serializers.DecimalField(max_digits=18, decimal_places=2)
    usd = serializers.DecimalField(max_digits=18, decimal_places=2)


class IdleUnknownSerializer(serializers.Serializer[Any]):
    """A notebook of which nobody can tell whether it is idle: it is not stopped for it."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    measured_at = serializers.DateTimeField(
        source="gpu_measured_at",
        allow_null=True,
        help_text="When its GPUs were measured last; null: never.",
    )


class ExemptionSerializer(serializers.Serializer[Any]):
    """A notebook that platform leads exempt from idle stops: until when, who did, and why."""

    notebook = serializers.IntegerField(source="pk")
    title = serializers.CharField()
    until = serializers.DateTimeField(source="exempt_until")
    by = PersonSerializer(source="exempt_by")
    reason = serializers.CharField(source="exempt_reason")


class UnknownServerSerializer(serializers.Serializer[Any]):
    """A server that runs in a hub and that the portal neither counts nor stops."""

    username = serializers.CharField(help_text="As the hub knows the person.")
    name = serializers.CharField(help_text="Empty for the account's unnamed server.")
    since = serializers.DateTimeField()
    reason = serializers.ChoiceField(
        choices=[(each.value, each.words) for each in UnknownReason],
        help_text="`person`: the portal knows nobody by this name; `profile`: it was started from no profile of the "
        "portal's.",
    )


class HubDetailSerializer(HubSerializer):
    """A hub with what becomes of idle notebooks there, and the servers that the portal does not know."""

    unknown_servers = UnknownServerSerializer(many=True, source="unknown_servers.all")
    saved = serializers.SerializerMethodField()
    exemptions = serializers.SerializerMethodField()
    idle_unknown = serializers.SerializerMethodField()

    @extend_schema_field(ExemptionSerializer(many=True))
    def get_exemptions(self, hub: Hub) -> Any:
        """Notebooks that platform leads exempt from idle stops, the next end first."""
        return ExemptionSerializer(exempt_on(hub, now=timezone.now()), many=True).data

    @extend_schema_field(IdleUnknownSerializer(many=True))
    def get_idle_unknown(self, hub: Hub) -> Any:
        """Notebooks of whose GPUs the cluster's Prometheus does not say whether they compute."""
        return IdleUnknownSerializer(
            idle_unknown_on(hub, now=timezone.now()), many=True
        ).data

    @extend_schema_field(SavedSerializer)
    def get_saved(self, hub: Hub) -> Any:
        """GPU-hours of idle notebooks that were stopped within 30 days, each for a day at most, and their worth."""
        return SavedSerializer(saved_on(hub.cluster_id, now=timezone.now())).data


class HubsSerializer(serializers.Serializer[Any]):
    """Every hub, by its cluster's name."""

    results = HubSerializer(many=True)


class ConnectHubSerializer(StrictSerializer):
    """How a hub is reached."""

    address = Text(
        max_length=LONGEST_ADDRESS,
        help_text="Where the portal calls it, such as https://hub.example.com.",
    )
    public_address = Text(
        max_length=LONGEST_ADDRESS,
        required=False,
        allow_blank=True,
        help_text="Where people open it, if that is another one.",
    )
    token_file = Text(
        max_length=200,
        help_text="The name of a file in the folder QM_HUB_CREDENTIALS_DIR.",
    )
    reclaim = Choice(choices=RECLAIMS, required=False)


class HubKeySerializer(serializers.Serializer[Any]):
    """A new key of a hub."""

    cluster = serializers.CharField()
    key_prefix = serializers.CharField()
    key = serializers.CharField(
        allow_null=True, help_text="Shown this once: null where the call is repeated."
    )


class SpawnableQuery(StrictSerializer):
    """For whom a hub asks."""

    username = Text(
        max_length=LONGEST_NAME,
        trim_whitespace=False,
        help_text="As the hub knows the person.",
    )
    object_id = serializers.UUIDField(
        required=False,
        help_text="The person's object id in Entra ID, from the hub's authenticator.",
    )
    server = Text(
        max_length=LONGEST_NAME,
        required=False,
        allow_blank=True,
        help_text="The server's name: of one that was launched in the portal, its variables from Secrets come along.",
    )


class SpawnableSerializer(serializers.Serializer[Spawnable]):
    """What a hub may start for somebody now."""

    username = serializers.CharField()
    profiles = serializers.ListField(
        child=serializers.DictField(),
        help_text="KubeSpawner's `profile_list`: an entry per namespace.",
    )
    reason = serializers.CharField(
        help_text="Why there are none; empty where there are some."
    )
    variables = serializers.ListField(
        child=serializers.CharField(),
        help_text="Those of the environments in `profiles` that are from Secrets, and this one server's alone.",
    )
