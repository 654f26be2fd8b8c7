"""What the portal keeps of how busy GPUs are."""

from django.db import models
from django.db.models import F, Q

from fleet.models import Cluster
from web.rows import Row


class PodUse(Row):
    """How busy the GPUs of a pod were when they were last measured, from 0 to 1, and since when they are idle.

    Pods of the teams' namespaces alone, whoever made them.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    share = models.FloatField()
    idle_since = models.DateTimeField(null=True)
    measured_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name"], name="one_use_per_pod"
            ),
            models.CheckConstraint(
                condition=Q(share__gte=0, share__lte=1),
                name="the_use_of_a_pod_is_a_share",
            ),
            models.CheckConstraint(
                condition=Q(idle_since=None) | Q(idle_since__lte=F("measured_at")),
                name="a_pod_is_idle_since_before_it_was_measured",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.share:.0%} of {self.namespace}/{self.name}"
