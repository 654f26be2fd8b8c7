"""What was committed last for a tenancy, and for what the teams of a cluster share."""

from django.db import models

from fleet.models import Cluster
from provisioning.models import Tenancy

SHORT = 7


class Committed(models.Model):
    """A commit that holds what is wanted; `pull` is the number of the pull request that brings it in, if one does."""

    sha = models.CharField(max_length=64)
    at = models.DateTimeField()
    pull = models.PositiveIntegerField(null=True)

    class Meta:
        abstract = True

    @property
    def short(self) -> str:
        """The commit's id as people read it."""
        return self.sha[:SHORT]


class TenancyCommit(Committed):
    """The newest commit of a tenancy; `generation` is the desired state that it holds."""

    tenancy = models.OneToOneField(
        Tenancy, models.CASCADE, primary_key=True, related_name="commit"
    )
    generation = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.short} of tenancy {self.tenancy_id}"


class ClusterCommit(Committed):
    """The newest commit of what the teams of a cluster share."""

    cluster = models.OneToOneField(
        Cluster, models.CASCADE, primary_key=True, related_name="commit"
    )

    def __str__(self) -> str:
        return f"{self.short} of cluster {self.cluster_id}"


def newest_of(cluster: Cluster) -> Committed | None:
    """The newest commit for a cluster; None before there is one."""
    found: list[Committed] = [
        *ClusterCommit.objects.filter(cluster=cluster),
        *TenancyCommit.objects.filter(tenancy__cluster=cluster).order_by("-at")[:1],
    ]
    return max(found, key=lambda commit: commit.at, default=None)
