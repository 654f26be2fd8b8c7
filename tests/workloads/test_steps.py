"""What can be done about a wait is a link on the pages: to GPUs that are free, or to the form for more."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from provisioning import reconcile
from provisioning.clusters.observe import look_at
from tests import factories
from tests.pages import parsed
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching, worker_pass
from tests.workloads.test_runs import ASKED, look_after, submit, until
from tests.workloads.test_runs_page import form
from workloads import kept_boards
from workloads.runs.models import Run


def links(user: User, address: str) -> dict[str, str]:
    """The links of a page, by their words."""
    browser = Client()
    browser.force_login(user)
    shown = parsed(browser.get(address).content.decode())
    return {one.words: one.attrs["href"] for one in shown.walk() if "href" in one.attrs}


def page_of(user: User, address: str) -> str:
    """The words of a page, with single spaces."""
    browser = Client()
    browser.force_login(user)
    return " ".join(parsed(browser.get(address).content.decode()).words.split())


@pytest.fixture
def waiting(watched: Watched) -> Iterator[Run]:
    """A run that waits while its cluster is watched, because another one has the team's two A100."""
    first = submit(watched)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(first)
        until(first, "running")
        yield submit(watched, key="two")


def until_explained(run: Run, said: str) -> None:
    def is_said() -> bool:
        worker_pass()
        browser = Client()
        browser.force_login(run.requester)
        return said in browser.get(f"/runs/{run.pk}").content.decode()

    wait_until(is_said, what=said, seconds=30)


@pytest.mark.slow
def test_free_gpus_of_another_kind_are_one_click_away(
    watched: Watched, waiting: Run
) -> None:
    h100 = factories.flavor(
        watched.cluster,
        "h100",
        product="H100",
        node_labels={"accelerator": "nvidia-h100"},
    )
    factories.allocation(watched.ada, watched.tenancy, h100, gpus=2)
    assert look_at(watched.cluster.pk, now=timezone.now)
    reconcile.reconcile(watched.tenancy.pk, now=timezone.now)
    label = "Use 2 × H100 on Training: free now"
    until_explained(waiting, label)
    for address in (f"/runs/{waiting.pk}", f"/teams/{watched.team.slug}/work"):
        href = links(watched.ada, address)[label]
        browser = Client()
        browser.force_login(watched.ada)
        typed = form(browser.get(href))
        assert (typed["flavor"], typed["gpus"], typed["title"]) == (
            "h100",
            "2",
            waiting.title,
        )


@pytest.mark.slow
def test_pages_call_a_run_by_its_name_and_what_it_is_on_the_cluster_second(
    watched: Watched, waiting: Run
) -> None:
    first = Run.objects.exclude(pk=waiting.pk).get()
    Run.objects.filter(pk=first.pk).update(title="Retrain the detector")
    kept_boards.at_hand.clear()
    cache.clear()
    until_explained(waiting, "Or stop")
    on_cluster = f"{first.main['kind']} {first.name}"
    shown = page_of(watched.ada, f"/runs/{waiting.pk}")
    assert f"Or stop “Retrain the detector” ({on_cluster}), which holds 2." in shown
    for address in (f"/teams/{watched.team.slug}/work", "/clusters/training/queue"):
        assert f"Retrain the detector {on_cluster}" in page_of(watched.ada, address)
        assert (
            links(watched.ada, address)["Retrain the detector"] == f"/runs/{first.pk}"
        )


@pytest.mark.slow
def test_who_holds_no_more_is_led_to_the_form_for_more_and_strangers_are_not(
    watched: Watched, waiting: Run
) -> None:
    until_explained(waiting, "Ask for 2 more")
    for address in (f"/runs/{waiting.pk}", f"/teams/{watched.team.slug}/work"):
        href = links(watched.ada, address)["Ask for 2 more"]
        assert href.startswith("/requests/new/gpus?")
        assert "flavor=training%2Fa100" in href
        assert "gpus=2" in href
    lead = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    assert "Ask for 2 more" not in links(lead, f"/teams/{watched.team.slug}/work")


@pytest.mark.slow
def test_a_run_that_made_room_for_another_is_told_so_on_its_page_and_in_its_log(
    watched: Watched,
) -> None:
    first = submit(watched, replace(ASKED, title="smallone", priority="exploratory"))
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(first)
        until(first, "running")
        second = submit(
            watched,
            replace(ASKED, title="prio", priority="scheduled-training"),
            key="two",
        )
        look_after(second)
        until(second, "running")
        until(first, "waiting")
        until_explained(first, "It waits for 2 × A100 more.")
        browser = Client()
        browser.force_login(watched.ada)
        told = " ".join(
            parsed(browser.get(f"/runs/{first.pk}").content.decode()).words.split()
        )
        kind = second.main["kind"]
        assert (
            f"because it made room for “prio” ({kind} {second.name}), which ranks higher in your queue."
            in told
        )
        assert "Sent back to the line by its queue" in told
        assert "Or stop" not in told
        log = browser.get(f"/runs/{first.pk}/log")
        assert log.content.decode().startswith(
            "The run has no pod now: its pods were stopped"
        )
