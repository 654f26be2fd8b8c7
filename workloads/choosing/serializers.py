"""How the API shows profiles of notebooks with their answers."""

from typing import Any

from rest_framework import serializers

from notebooks.profile_desk.serializers import ProfileSerializer
from workloads.choosing.page import Answer, Card, Outcome

OUTCOMES = [(each.value, each.value) for each in Outcome]


class ProfileAnswerSerializer(serializers.Serializer[Answer]):
    """What would become of a server that is started now."""

    outcome = serializers.ChoiceField(choices=OUTCOMES)
    sentence = serializers.CharField()
    detail = serializers.CharField()
    lacks = serializers.IntegerField(
        help_text="GPUs that the team would have to ask for first."
    )
    ask = serializers.CharField(
        help_text="The form for those, filled in; empty where nothing is lacking."
    )


class ProfileCardSerializer(serializers.Serializer[Card]):
    """A profile in a namespace, with its price and its answer."""

    profile = ProfileSerializer()
    usd_per_hour = serializers.DecimalField(
        max_digits=18,
        decimal_places=4,
        allow_null=True,
        help_text="Of the server that starts where nobody chose anything; null where the cluster has no such GPU.",
    )
    answer = ProfileAnswerSerializer()


class ProfileCardsSerializer(serializers.Serializer[Any]):
    """Every profile that is offered, those that start first before those that never will."""

    results = ProfileCardSerializer(many=True)


class DevContainerSerializer(serializers.Serializer[Any]):
    """A development container."""

    json = serializers.CharField(help_text="The text of a `devcontainer.json`.")
    repository = serializers.CharField(
        help_text="Where Git clones it from without signing in, for a day; a secret of whoever asked."
    )
    vscode = serializers.CharField(
        help_text="What opens it in VS Code on the machine of whoever follows it."
    )
