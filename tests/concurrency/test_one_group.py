"""A sweep that read a team before its group was changed gives the registry back to nobody."""

import pytest
from django.utils import timezone

from accounts.models import Team
from capacity.models import RegistryAccess
from capacity.registry import actions as registry
from tests import factories
from tests.concurrency.together import held_up

REGISTRY = "/subscriptions/s/resourcegroups/g/providers/registries/gpuplatform"
GROUP = factories.group_oid(77)


@pytest.mark.django_db(transaction=True)
def test_a_sweep_that_read_a_team_before_its_change_leaves_the_registry_to_the_new_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "registry_id", lambda: REGISTRY)
    now = timezone.now()
    team = factories.team()
    registry.follow(team, now=now)
    read_before = Team.objects.get(pk=team.pk)

    def change_group() -> None:
        Team.objects.filter(pk=team.pk).update(entra_group=GROUP)
        registry.follow(Team.objects.get(pk=team.pk), now=now)

    held_up(lambda: registry.follow(read_before, now=now), by=change_group)
    assert RegistryAccess.objects.get().group == GROUP
