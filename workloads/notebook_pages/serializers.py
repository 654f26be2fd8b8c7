"""How the API shows notebook servers, and what it takes for one."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import PersonSerializer, TeamNameSerializer
from notebooks.hubs.serializers import ExemptionSerializer
from notebooks.models import NotebookServer
from notebooks.profile_desk.kept import offered_instead, retired_words
from notebooks.profiles.patterns import MAX_VALUE
from notebooks.profiles.states import State as ProfileState
from notebooks.servers.actions import MAX_REASON
from notebooks.servers.states import State, StopReason
from provisioning.desired.variables import MAX_SECRETS
from web.names import LONGEST_NAME
from web.strict import Choice, Moment, PageQuery, StrictSerializer, Text
from workloads.api import WhySerializer
from workloads.notebook_pages.page import may_open, sentence_of
from workloads.notebook_pages.shown import address_of, idle_of
from workloads.runs.serializers import SecretVariableSerializer

STATES = [(each.value, each.words) for each in State]
STOP_REASONS = [(each.value, each.words) for each in StopReason]


class LaunchSerializer(StrictSerializer):
    """Which profile to launch and what is chosen in it; see `/api/v1/places/{id}/profiles/`."""

    profile = Text(max_length=40)
    title = Text(max_length=LONGEST_NAME, required=False, allow_blank=True)
    options = serializers.DictField(
        child=Text(max_length=MAX_VALUE),
        required=False,
        help_text="Choices by option; a free one as `<option>--unlisted-choice`. What is left out is as usual.",
    )
    secrets = serializers.ListField(
        child=SecretVariableSerializer(),
        required=False,
        max_length=MAX_SECRETS,
        help_text="Variables with the values of keys of Secrets, kept for each start; the portal reads no Secret.",
    )


class StartAgainSerializer(StrictSerializer):
    """With which variables a notebook starts again."""

    secrets = serializers.ListField(
        child=SecretVariableSerializer(),
        required=False,
        max_length=MAX_SECRETS,
        help_text="All variables from Secrets, in the place of those before; left out, it keeps them.",
    )


class KeepSerializer(StrictSerializer):
    """How long a notebook is kept though nobody uses it, and why."""

    reason = Text(
        max_length=MAX_REASON,
        required=False,
        allow_blank=True,
        help_text="Needed from the second time on.",
    )
    until = Moment(
        required=False,
        allow_null=True,
        help_text="Two hours from now where it is left out; platform leads may name another, at most 30 days from now. "
        "It then holds over restarts, too, as `exemption`.",
    )


class NotebookQuery(PageQuery):
    """Which notebooks to list."""

    team = Text(required=False, max_length=40)
    state = Choice(choices=[state.value for state in State], required=False)
    live = Choice(
        choices=["true", "false"],
        required=False,
        help_text="Only those that run, or do not.",
    )
    mine = Choice(choices=["true"], required=False, help_text="Only one's own.")


class NotebookShortSerializer(serializers.Serializer[NotebookServer]):
    """A notebook in a list; times are UTC, money is USD."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    team = TeamNameSerializer()
    owner = PersonSerializer()
    cluster = serializers.CharField(source="cluster.name")
    namespace = serializers.CharField(source="tenancy.namespace")
    tenancy = serializers.IntegerField(source="tenancy_id")
    profile = serializers.CharField(source="profile.slug")
    profile_version = serializers.IntegerField()
    state = serializers.ChoiceField(choices=STATES)
    stop_reason = serializers.ChoiceField(
        choices=STOP_REASONS,
        allow_blank=True,
        help_text="Why it stopped or is being stopped.",
    )
    message = serializers.CharField(
        help_text="Why it failed or does not come up; may be empty."
    )
    flavor = serializers.CharField(source="flavor.name", default=None, allow_null=True)
    gpus = serializers.IntegerField()
    usd_per_hour = serializers.DecimalField(max_digits=18, decimal_places=4)
    cost = serializers.SerializerMethodField()
    ran_seconds = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    launched_at = serializers.DateTimeField(
        help_text="When it was last asked to start."
    )
    ready_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when it can be used."
    )
    stopped_at = serializers.DateTimeField(allow_null=True)
    idle_since = serializers.SerializerMethodField()
    gpu_busy_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When its GPUs were last seen to compute; null before they did, and where nobody measures them.",
    )
    keep_until = serializers.DateTimeField(
        source="kept_until",
        allow_null=True,
        help_text="Not stopped for being idle until then.",
    )
    address = serializers.SerializerMethodField()

    @extend_schema_field(serializers.CharField())
    def get_cost(self, server: NotebookServer) -> str:
        """USD so far, over all its starts."""
        return f"{server.cost(self.context['now']):.2f}"

    @extend_schema_field(serializers.IntegerField())
    def get_ran_seconds(self, server: NotebookServer) -> int:
        """How long it could be used, over all its starts."""
        return round(server.ran(self.context["now"]).total_seconds())

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_idle_since(self, server: NotebookServer) -> Any:
        """Since when nobody has used it; null while it cannot be used."""
        at = idle_of(server)
        return at.isoformat().replace("+00:00", "Z") if at is not None else None

    @extend_schema_field(serializers.CharField())
    def get_address(self, server: NotebookServer) -> str:
        """Where the caller opens it; empty while it is not ready, and for everybody but its owner."""
        return address_of(server) if may_open(server, self.context["by"]) else ""


class NotebookSerializer(NotebookShortSerializer):
    """A notebook with everything about it."""

    options = serializers.DictField(
        child=serializers.CharField(), help_text="What was chosen in its profile."
    )
    secrets = serializers.ListField(
        child=SecretVariableSerializer(),
        help_text="The variables that it takes from Secrets of its namespace, by name.",
    )
    sentence = serializers.SerializerMethodField()
    why = WhySerializer(
        allow_null=True,
        source="seen.why",
        help_text="Why one that starts is not there yet, as of a run.",
    )
    silent_since = serializers.DateTimeField(
        allow_null=True,
        source="seen.seen.silent_since",
        default=None,
        help_text="The cluster is silent since then.",
    )
    hub_reachable = serializers.BooleanField(
        source="seen.hub.reachable",
        default=None,
        allow_null=True,
        help_text="False: its hub did not answer at `hub_looked_at`, and `state` is the last that is known.",
    )
    hub_looked_at = serializers.DateTimeField(
        source="seen.hub.looked_at", default=None, allow_null=True
    )
    cannot_start = serializers.SerializerMethodField()
    successor = serializers.SerializerMethodField()
    kept_times = serializers.IntegerField()
    keep_reason = serializers.CharField()
    exemption = serializers.SerializerMethodField()
    stops_when_idle = serializers.DateTimeField(
        source="seen.stops_when_idle",
        allow_null=True,
        help_text="When it is stopped if nobody uses or keeps it.",
    )
    idle_unknown_since = serializers.DateTimeField(
        source="seen.idle_unknown_since",
        allow_null=True,
        help_text="Since then its hub has not said whether somebody works in it, or its cluster's Prometheus whether "
        "its GPUs compute, so it is not stopped for being idle.",
    )
    ends_at = serializers.DateTimeField(
        source="seen.ends_at",
        allow_null=True,
        help_text="When its profile's limit ends it.",
    )
    gpus_go_back_at = serializers.DateTimeField(
        source="seen.goes_back",
        allow_null=True,
        help_text="When it is stopped with the GPUs that carry it.",
    )
    idle_usd = serializers.SerializerMethodField()

    @extend_schema_field(serializers.CharField())
    def get_cannot_start(self, server: NotebookServer) -> str:
        """Why it cannot be started again once it has stopped: its profile was retired. Empty where it can."""
        return retired_words(server.profile)

    @extend_schema_field(serializers.CharField())
    def get_successor(self, server: NotebookServer) -> str:
        """The profile to launch instead; empty where there is none, and while its own is not retired."""
        is_retired = server.profile.state == ProfileState.RETIRED
        following = offered_instead(server.profile) if is_retired else None
        return following.slug if following else ""

    @extend_schema_field(ExemptionSerializer(allow_null=True))
    def get_exemption(self, server: NotebookServer) -> Any:
        """Until when platform leads exempt it from idle stops, who did, and why; null where they do not."""
        return (
            ExemptionSerializer(server).data
            if server.is_exempt(self.context["now"])
            else None
        )

    @extend_schema_field(serializers.CharField())
    def get_sentence(self, server: Any) -> str:
        """What is with it, in the words of its page."""
        return sentence_of(server.seen, by=self.context["by"])

    @extend_schema_field(serializers.CharField())
    def get_idle_usd(self, server: Any) -> str:
        """USD that its GPUs have cost since somebody used it last."""
        return f"{server.seen.idle_usd(self.context['now']):.2f}"
