"""How the API shows how busy GPUs are."""

from typing import Any

from rest_framework import serializers


class BusySerializer(serializers.Serializer[Any]):
    """How busy the GPUs are that a run, or any other work, holds now, by the cluster's Prometheus."""

    share = serializers.FloatField(
        allow_null=True, help_text="0 to 1; null where it is not known."
    )
    idle_since = serializers.DateTimeField(
        allow_null=True,
        help_text="Since when nothing has computed on them; null while something does.",
    )
    words = serializers.CharField()


class RunUseSerializer(BusySerializer):
    """How busy a run's GPUs are while it holds some, and how well they were used on the whole, also after its end."""

    words = serializers.CharField(
        help_text="How busy they are now; empty while it holds none."
    )
    overall = serializers.CharField(
        help_text="The same on the whole, with the memory; empty where nothing is known of it."
    )
    mean_share = serializers.FloatField(
        allow_null=True,
        help_text="0 to 1, over the time that was measured; null where that is less than five minutes.",
    )
    measured_seconds = serializers.IntegerField(
        help_text="For how long all its GPUs were measured, in all its attempts."
    )
    peak_memory_gb = serializers.FloatField(
        allow_null=True,
        help_text="The most that one GPU, or slice, used of its memory; null where Prometheus does not know it.",
    )
