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
