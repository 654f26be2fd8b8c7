"""What a cluster may be told about itself: names that become addresses on it are names."""

import pytest

from accounts.roles import Role
from audit.models import Event
from fleet.clusters.actions import change_cluster
from fleet.models import Cluster
from tests import factories
from web.refusals import BadInput

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("field", ["cohort", "storage_class"])
@pytest.mark.parametrize("name", ["..", "a/b", "A b", "-a", "a\n", "{{x}}", "ａ"])
def test_a_name_that_no_object_can_have_is_refused_at_its_field(
    field: str, name: str
) -> None:
    priya = factories.person("Priya", Role.PLATFORM_LEAD)
    cluster = factories.cluster("training")
    before = Event.objects.count()
    with pytest.raises(BadInput) as refused:
        change_cluster(cluster.pk, values={field: name}, by=priya)
    assert (refused.value.field, Event.objects.count()) == (field, before)


def test_an_ordinary_name_is_taken() -> None:
    priya = factories.person("Priya", Role.PLATFORM_LEAD)
    values = {"cohort": "research.pool-2", "storage_class": "managed-csi"}
    change_cluster(factories.cluster("training").pk, values=values, by=priya)
    assert Cluster.objects.filter(**values).exists()
