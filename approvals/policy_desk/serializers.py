"""How the API shows versions and drafts of the policy, and what it takes for one."""

from typing import Any

from rest_framework import serializers

from accounts.api import PersonSerializer
from approvals.policy_desk.simulator import LONGEST_DAYS, Replay, Simulation
from policy.evaluation import Outcome
from policy.models import PolicyCancellation, PolicyDraft, PolicyVersion
from policy.serializers import PolicyWholeSerializer
from web.documents import LARGEST
from web.strict import (
    Boolean,
    Integer,
    Moment,
    PageQuery,
    QueryNumber,
    StrictSerializer,
    Text,
)

OUTCOMES = [outcome.value for outcome in Outcome]
LONGEST_WHY = 200


class PolicyCancellationSerializer(serializers.Serializer[PolicyCancellation]):
    """Who had a version not come into force, when and why."""

    by = PersonSerializer()
    at = serializers.DateTimeField()
    reason = serializers.CharField(source="why")


class PolicyVersionSerializer(serializers.Serializer[PolicyVersion]):
    """A version of the policy; `proposed_by` and `activated_by` are null for what was shipped."""

    number = serializers.IntegerField()
    active_from = serializers.DateTimeField()
    reason = serializers.CharField(source="why")
    proposed_by = PersonSerializer(allow_null=True)
    activated_by = PersonSerializer(allow_null=True)
    cancellation = PolicyCancellationSerializer(
        allow_null=True,
        default=None,
        help_text="Null for what is in force, was, or is to come.",
    )
    document = PolicyWholeSerializer(source="whole")


class PolicyDraftSerializer(serializers.Serializer[PolicyDraft]):
    """A policy that is being written; `became` is the version's number once it is in force."""

    id = serializers.IntegerField()
    base = serializers.IntegerField(source="base.number")
    document = serializers.DictField()
    reason = serializers.CharField(source="why")
    author = PersonSerializer()
    version = serializers.IntegerField(help_text="Counts every change; the ETag.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    handed_in_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Since when others are asked to put it in force.",
    )
    closed_at = serializers.DateTimeField(allow_null=True)
    became = serializers.IntegerField(
        source="became.number", allow_null=True, default=None
    )


class PolicyDocumentSerializer(StrictSerializer):
    """A policy as JSON or as YAML, one of the two, and why."""

    document = serializers.DictField(required=False)
    yaml = Text(required=False, max_length=2 * LARGEST, trim_whitespace=False)
    reason = Text(
        required=False, allow_blank=True, max_length=LONGEST_WHY, source="why"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Raises ValidationError when the policy is said twice."""
        if "document" in attrs and "yaml" in attrs:
            raise serializers.ValidationError(
                {"yaml": "Send the document or its YAML, not both."}
            )
        return attrs


class NewPolicyDraftSerializer(PolicyDocumentSerializer):
    """A draft to begin: of a version's values when it says none of its own."""

    base = Integer(
        required=False,
        min_value=1,
        max_value=2_000_000_000,
        help_text="The newest unless told otherwise.",
    )


class PolicyYamlInSerializer(StrictSerializer):
    """A policy as YAML, to become a draft."""

    yaml = Text(max_length=2 * LARGEST, trim_whitespace=False)
    reason = Text(
        required=False, allow_blank=True, max_length=LONGEST_WHY, source="why"
    )


class PolicyYamlSerializer(serializers.Serializer[Any]):
    """A version of the policy as YAML."""

    number = serializers.IntegerField()
    yaml = serializers.CharField()


class YamlQuery(StrictSerializer):
    """Which version; the one in force unless told."""

    version = QueryNumber(required=False, min_value=1, max_value=2_000_000_000)


class DraftQuery(PageQuery):
    """Which drafts to list."""

    open = serializers.ChoiceField(choices=["true", "false"], required=False)


class ActivateSerializer(StrictSerializer):
    """From when on, and the tick that a policy without bounds needs."""

    active_from = Moment(
        required=False, help_text="Now unless told otherwise; at most 90 days ahead."
    )
    everything_automatic = Boolean(required=False, help_text="True when that is meant.")


class CancelSerializer(StrictSerializer):
    """Why a policy that is to come does not."""

    reason = Text(max_length=LONGEST_WHY, source="why")


class SimulateSerializer(StrictSerializer):
    """How many days to replay."""

    days = Integer(
        required=False,
        min_value=1,
        max_value=LONGEST_DAYS,
        help_text="30 unless told otherwise.",
    )


class PolicyDifferenceSerializer(serializers.Serializer[Any]):
    """One place where two policies differ; null is what is not there on that side."""

    place = serializers.CharField()
    before = serializers.CharField(allow_null=True)
    after = serializers.CharField(allow_null=True)


class PolicyDifferencesSerializer(serializers.Serializer[Any]):
    """What a draft changes of its base."""

    base = serializers.IntegerField()
    differences = PolicyDifferenceSerializer(many=True)


class ReplayCountSerializer(serializers.Serializer[Any]):
    """How many asks were answered so then, and would be so now; money in USD."""

    before = serializers.ChoiceField(choices=OUTCOMES)
    after = serializers.ChoiceField(choices=OUTCOMES)
    asks = serializers.IntegerField()
    usd = serializers.CharField()
    gpu_hours = serializers.CharField()


class DifferingSerializer(serializers.Serializer[Any]):
    """An ask that would have been answered otherwise."""

    request = serializers.IntegerField()
    before = serializers.ChoiceField(choices=OUTCOMES)
    after = serializers.ChoiceField(choices=OUTCOMES)
    why = serializers.CharField()
    usd = serializers.CharField()
    gpu_hours = serializers.CharField()


class ReplaySerializer(serializers.Serializer[Any]):
    """Asks judged again; `differing` holds at most the newest 200."""

    asks = serializers.IntegerField()
    differs = serializers.IntegerField()
    counts = ReplayCountSerializer(many=True)
    differing = DifferingSerializer(many=True)


class SimulationSerializer(serializers.Serializer[Any]):
    """A policy beside what was decided: the asks of the last days, and those that wait now."""

    days = serializers.IntegerField()
    past = ReplaySerializer()
    waiting = ReplaySerializer()
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Why it needs a tick to be activated."
    )
    cannot_know = serializers.CharField()


def replay_shown(found: Replay) -> dict[str, Any]:
    """A replay as the API shows it, the newest difference first."""
    return {
        "asks": found.asks,
        "differs": found.differs,
        "counts": [
            {
                "before": before,
                "after": after,
                "asks": asks,
                "usd": str(found.amounts[before, after].usd),
                "gpu_hours": str(found.amounts[before, after].gpu_hours),
            }
            for (before, after), asks in sorted(found.counts.items())
            if asks
        ],
        "differing": [
            {
                "request": each.request_id,
                "before": each.before,
                "after": each.after,
                "why": each.because,
                "usd": str(each.amount.usd),
                "gpu_hours": str(each.amount.gpu_hours),
            }
            for each in reversed(found.differing)
        ],
    }


def simulation_shown(
    found: Simulation, warnings: tuple[str, ...], cannot_know: str
) -> dict[str, Any]:
    """A simulation as the API shows it."""
    return {
        "days": found.days,
        "past": replay_shown(found.past),
        "waiting": replay_shown(found.waiting),
        "warnings": list(warnings),
        "cannot_know": cannot_know,
    }
