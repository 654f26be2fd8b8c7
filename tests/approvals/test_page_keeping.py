"""A request to keep GPUs longer, as the person sees it who decides, and as a script would send it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from allocations.models import Allocation
from approvals.conversation.actions import edit
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import submit
from policy.document import Policy, Thresholds
from tests import factories
from tests.scene import DAY, Scene

SHORT = replace(Policy(), thresholds=Thresholds(automatic_days=3))


@pytest.fixture
def keeping(scene: Scene) -> Request:
    """Ada holds two, and asks to keep them for longer than the policy gives."""
    now = timezone.now()
    factories.policy(SHORT, now=now - 2 * DAY)
    first = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=2, now=now - DAY
    )
    rows = Request.objects.select_related(
        "team", "flavor__cluster", "tenancy__team", "tenancy__cluster"
    )
    longer = renewing.wanted(
        rows.get(pk=first.pk),
        until=now + timedelta(days=9),
        reason="It is not done yet.",
        now=now,
    )
    return submit(longer, by=scene.ada, now=now)


def test_who_decides_reads_that_nothing_grows_and_what_comes_on_top(
    client: Client, scene: Scene, keeping: Request
) -> None:
    client.force_login(scene.priya)
    page = client.get(f"/approvals/{keeping.pk}/").content.decode()
    assert "Keep 2 × A100 for Vision" in page
    assert "asks to keep 2 × A100" in page
    assert "from 2 to 4" not in page
    assert "of it come on top" in page


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/requests/", "/requests/{}/", "/teams/vision/"])
def test_who_asked_reads_everywhere_that_they_are_kept(
    client: Client, scene: Scene, keeping: Request, path: str
) -> None:
    client.force_login(scene.ada)
    assert "Keep 2 × A100" in client.get(path.format(keeping.pk)).content.decode()


def test_a_renewal_that_was_changed_still_began_as_one(
    client: Client, scene: Scene, keeping: Request
) -> None:
    rows = Request.objects.select_related(
        "team", "flavor__cluster", "tenancy__team", "tenancy__cluster"
    )
    sooner = keeping.until - timedelta(days=1)
    fewer = renewing.wanted(
        rows.get(renewals=keeping),
        until=sooner,
        reason="It is not done yet.",
        now=timezone.now(),
    )
    edit(
        keeping.pk,
        fewer,
        by=scene.ada,
        expected_version=keeping.version,
        now=timezone.now(),
    )
    client.force_login(scene.ada)
    shown = client.get(f"/requests/{keeping.pk}/")
    assert shown.context["timeline"][0]["title"] == "Asked to keep 2 × A100 longer"
    assert "Ada Okafor asked." not in shown.content.decode()
    assert "asks to keep 2 × A100 in Training" in shown.content.decode()


def test_the_page_that_keeps_them_longer_leads_to_the_renewal_that_waits(
    client: Client, scene: Scene, keeping: Request
) -> None:
    client.force_login(scene.ada)
    held = Allocation.objects.live().get()
    shown = client.get(f"/allocations/{held.pk}/renew").content.decode()
    assert f'href="/requests/{keeping.pk}/"' in shown
    assert "waits for a decision." in shown
    assert 'id="ask-button"' not in shown


def test_what_is_only_kept_is_nobodys_rival(
    client: Client, scene: Scene, keeping: Request
) -> None:
    other = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=5, now=timezone.now()
    )
    client.force_login(scene.priya)
    assert (
        "Nobody else waits for them."
        in client.get(f"/approvals/{other.pk}/").content.decode()
    )


def test_its_api_call_keeps_them_and_asks_for_no_others(
    client: Client, scene: Scene, keeping: Request
) -> None:
    client.force_login(scene.ada)
    said = client.get(f"/requests/{keeping.pk}/").context["curl"]
    assert f"/api/v1/requests/{keeping.renews_id}/renew/ " in said
    assert '"spec"' not in said
