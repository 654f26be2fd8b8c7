"""What a run's page advises for the next size: a kind with less memory, fewer GPUs, or nothing."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.roles import Role
from fleet.models import Cluster, Flavor
from provisioning.desired.first_job import Kind
from provisioning.stages import Stage
from tests import factories
from tests.pages import Element
from tests.workloads.conftest import Watched
from tests.workloads.test_runs import ASKED, submit
from tests.workloads.test_runs_page import FRAME, MOST_QUERIES, client, form, page
from workloads.gpu_use.overall import Overall
from workloads.models import GpuUse, Run
from workloads.runs import attempts
from workloads.runs.ending import end
from workloads.runs.planning.pools import Pool, Recommended
from workloads.runs.planning.right_size import (
    OwnKind,
    fewer_words,
    is_worth_judging,
    may_be_fewer,
    may_be_smaller,
    memory_needed,
    smaller_kind,
    smaller_words,
)
from workloads.runs.states import State
from workloads.templates.library import BY_SLUG

POLL = {"HX-Request": "true"}
TEMPLATE = BY_SLUG["single-node"]
SLICE = "nvidia.com/mig-2g.20gb"
HAD = OwnKind(name="a100", memory=80, usd_per_hour=Decimal("3.67"))
HOUR = timedelta(hours=1)
USED = Overall(
    share=0.3, peak_mib=14_000, measured=HOUR, ran=HOUR, gpus=1, memory_gb=80
)


def pool(name: str, memory: int, usd: str, **fields: Any) -> Pool:
    kind = Kind(name, fields.pop("resource", "nvidia.com/gpu"), {}, [])
    usual: dict[str, Any] = {
        "product": "A100",
        "gpus": 0,
        "borrow": 0,
        "per_node": 8,
        "usd_per_hour": Decimal(usd),
        "memory": memory,
    }
    return Pool(kind=kind, **usual | fields)


OWN = pool("a100", 80, "3.67", gpus=2)
TWENTY = pool("a100-2g", 20, "0.92", resource=SLICE)


def found(
    *offered: Pool,
    held: tuple[Pool, ...] = (OWN,),
    use: Overall = USED,
    had: OwnKind = HAD,
    are_together: bool = False,
) -> Recommended | None:
    return smaller_kind(
        use,
        had,
        {one.kind.name: one for one in held},
        {one.kind.name: one for one in (OWN, *offered)},
        TEMPLATE,
        are_together=are_together,
    )


def flavor_of(recommended: Recommended | None) -> str:
    return recommended.flavor if recommended is not None else ""


def test_the_next_size_follows_only_from_ten_minutes_that_are_most_of_the_run() -> None:
    ten = timedelta(minutes=10)
    assert is_worth_judging(replace(USED, measured=ten, ran=ten))
    assert not is_worth_judging(replace(USED, measured=0.9 * ten, ran=ten))
    assert is_worth_judging(replace(USED, measured=0.75 * HOUR))
    assert not is_worth_judging(replace(USED, measured=0.7 * HOUR))
    assert not is_worth_judging(replace(USED, share=None))


def test_a_fifth_more_memory_than_the_peak_is_needed() -> None:
    assert memory_needed(USED) == 17
    assert memory_needed(replace(USED, peak_mib=0)) == 1
    assert memory_needed(replace(USED, peak_mib=None)) is None


def test_less_memory_may_do_only_where_it_is_known_and_less() -> None:
    assert may_be_smaller(USED, HAD)
    assert may_be_smaller(replace(USED, share=1), HAD)
    assert not may_be_smaller(replace(USED, peak_mib=None), HAD)
    assert not may_be_smaller(USED, replace(HAD, memory=17))
    assert not may_be_smaller(replace(USED, measured=HOUR / 10), HAD)


def test_the_smallest_kind_with_enough_is_found_held_or_offered() -> None:
    forty = pool("a100-3g", 40, "1.8", resource="nvidia.com/mig-3g.40gb")
    assert flavor_of(found(TWENTY, forty)) == "a100-2g"
    held = found(forty, held=(OWN, TWENTY))
    assert held is not None
    assert (held.flavor, held.is_held) == ("a100-2g", True)
    assert flavor_of(found(TWENTY, forty, use=replace(USED, peak_mib=20_000))) == (
        "a100-3g"
    )
    assert found() is None


def test_nothing_follows_from_a_kind_that_is_dearer_as_large_or_lacks() -> None:
    assert found(pool("dear", 20, "4")) is None
    same = pool("same", 20, "3.67", gpus=1)
    assert found(held=(OWN, same)) is None
    assert found(pool("large", 80, "1")) is None
    assert found(pool("unknown", 0, "1")) is None
    assert flavor_of(found(pool("some", 20, "1", on_cluster=1))) == "some"
    assert found(pool("none", 20, "1", on_cluster=0)) is None
    assert found(TWENTY, use=replace(USED, peak_mib=None)) is None


def test_it_is_bought_as_the_run_was() -> None:
    spot = pool("t4-spot", 20, "0.1", is_spot=True)
    assert found(spot) is None
    assert flavor_of(found(spot, TWENTY, had=replace(HAD, is_spot=True))) == "t4-spot"


def test_gpus_that_train_together_are_led_to_no_slices() -> None:
    l4 = pool("l4", 24, "0.95", product="L4")
    assert flavor_of(found(TWENTY, l4, are_together=True)) == "l4"
    assert found(TWENTY, are_together=True) is None


def test_the_words_tell_the_price_and_what_it_may_take() -> None:
    offered, held = found(TWENTY), found(held=(OWN, TWENTY))
    assert offered is not None
    assert held is not None
    price = "Its memory fits a slice of A100 with 20 GB, for $0.92 a GPU-hour instead of $3.67."
    assert smaller_words(USED, HAD, held) == f"{price} It may run longer there."
    assert smaller_words(USED, HAD, offered) == (
        f"{price} Your team holds none of them: the form asks for some. It may run longer there."
    )
    assert smaller_words(replace(USED, share=0.5), HAD, held) == (
        f"{price} Its GPUs were busy: it runs longer there, and may cost as much."
    )


def test_fewer_gpus_may_do_where_several_are_busy_less_than_half_of_the_time() -> None:
    several = replace(USED, gpus=4, share=0.38)
    assert may_be_fewer(several)
    assert fewer_words(several) == (
        "Its 4 GPUs were busy 38 % of the time: fewer may do, unless they waited for data."
    )
    assert may_be_fewer(replace(several, gpus=2))
    assert not may_be_fewer(replace(several, share=0.5))
    assert not may_be_fewer(replace(several, gpus=1))
    assert not may_be_fewer(replace(several, measured=HOUR / 10))


@pytest.fixture
def slices(watched: Watched) -> Flavor:
    """Slices of 20 GB that the cluster offers."""
    return factories.flavor(
        watched.cluster,
        "a100-2g",
        memory_gb=20,
        resource=SLICE,
        gpus_per_node=24,
        price_per_gpu_hour=Decimal("0.92"),
    )


@pytest.fixture
def going_on(watched: Watched, slices: Flavor) -> Run:
    """A run on one A100 that runs for an hour, in which it used 14 GB and computed for a third of the time."""
    run = submit(watched, replace(ASKED, values={**ASKED.values, "gpus": 1}))
    now, start = timezone.now(), timezone.now() - HOUR
    Run.objects.update(created_at=start, sent_at=start, state="running")
    run.refresh_from_db()
    attempts.begin(run, at=start, admitted_at=start)
    GpuUse.objects.create(
        run=run,
        share=0.3,
        measured_at=now,
        busy_seconds=1_200,
        measured_seconds=3_600,
        peak_mib=14_000,
    )
    return run


@pytest.fixture
def ended(going_on: Run) -> Run:
    """The same after its end."""
    end(going_on.pk, State.FINISHED, now=timezone.now())
    going_on.refresh_from_db()
    return going_on


def advice(shown: Element) -> Element | None:
    """What a page advises for the next size."""
    return next(
        (one for one in shown.walk() if one.attrs.get("id") == "next-size"), None
    )


def words_of(watched: Watched, run: Run) -> str:
    """The advice on the run's page, as Ada reads it."""
    found = advice(page(client(watched.ada).get(f"/runs/{run.pk}")))
    return found.words if found is not None else ""


def test_the_page_leads_to_the_form_filled_in_with_the_smaller_kind(
    watched: Watched, ended: Run
) -> None:
    ada = client(watched.ada)
    shown = page(ada.get(f"/runs/{ended.pk}"))
    found = advice(shown)
    assert found is not None
    assert "a slice of A100 with 20 GB, for $0.92 a GPU-hour" in found.words
    [link] = [one for one in found.walk() if "href" in one.attrs]
    assert link.words == "Change and rerun with A100 2g.20gb slice"
    asked = parse_qs(urlsplit(link.attrs["href"]).query)
    assert asked == {"again": [str(ended.pk)], "flavor": ["a100-2g"]}
    filled = form(ada.get(link.attrs["href"]))
    assert (filled["flavor"], filled["gpus"]) == ("a100-2g", "1")
    assert filled["title"] == ended.title


def test_who_is_not_of_the_team_reads_it_without_a_link(
    watched: Watched, ended: Run
) -> None:
    lead = factories.person("", Role.PLATFORM_LEAD)
    found = advice(page(client(lead).get(f"/runs/{ended.pk}")))
    assert found is not None
    assert "20 GB" in found.words
    assert not [one for one in found.walk() if "href" in one.attrs]


@pytest.mark.slow
def test_nothing_is_advised_where_it_does_not_follow(
    watched: Watched, ended: Run, slices: Flavor
) -> None:
    assert words_of(watched, ended)
    measured = {"busy_seconds": 180, "measured_seconds": 540}
    GpuUse.objects.update(**measured)
    Run.objects.update(ran_seconds=540)
    assert words_of(watched, ended) == ""
    GpuUse.objects.update(busy_seconds=1_200, measured_seconds=3_600)
    Run.objects.update(ran_seconds=3_600)
    GpuUse.objects.update(peak_mib=None)
    assert words_of(watched, ended) == ""
    GpuUse.objects.update(peak_mib=60_000)
    assert words_of(watched, ended) == ""
    GpuUse.objects.update(peak_mib=14_000)
    Flavor.objects.filter(pk=slices.pk).update(is_offered=False)
    assert words_of(watched, ended) == ""
    other = factories.team("Other")
    Flavor.objects.filter(pk=slices.pk).update(is_offered=True, dedicated_to=other)
    assert words_of(watched, ended) == ""
    Flavor.objects.filter(pk=slices.pk).update(dedicated_to=None)
    assert words_of(watched, ended)


def test_on_a_cluster_that_takes_no_requests_only_what_is_held_is_advised(
    watched: Watched, ended: Run, slices: Flavor
) -> None:
    Cluster.objects.update(enabled=False)
    assert words_of(watched, ended) == ""
    Cluster.objects.update(enabled=True)
    factories.allocation(watched.ada, watched.tenancy, slices, gpus=1)
    Cluster.objects.update(enabled=False)
    assert "20 GB" in words_of(watched, ended)
    assert "holds none" not in words_of(watched, ended)


def test_a_team_that_leaves_its_namespace_is_advised_nothing(
    watched: Watched, ended: Run
) -> None:
    factories.leave(watched.tenancy, to=Stage.LEAVING, at=timezone.now())
    assert words_of(watched, ended) == ""


def test_several_gpus_that_wait_are_told_that_fewer_may_do(
    watched: Watched, ended: Run, slices: Flavor
) -> None:
    Run.objects.update(
        gpus=2,
        submission={
            **ended.submission,
            "values": {**ended.submission["values"], "gpus": 2},
        },
    )
    words = words_of(watched, ended)
    assert "Its 2 GPUs were busy 33 % of the time: fewer may do" in words
    # Together they take no slices.
    assert "slice" not in words


def own_queries(watched: Watched, run: Run, **headers: str) -> list[str]:
    """What the run's page asks of the database, beside the frame around it."""
    ada = client(watched.ada)
    ada.get(f"/runs/{run.pk}", headers=headers)
    with CaptureQueriesContext(connection) as seen:
        ada.get(f"/runs/{run.pk}", headers=headers)
    said = [one["sql"] for one in seen.captured_queries]
    return [sql for sql in said if not any(f'FROM "{table}"' in sql for table in FRAME)]


def test_while_it_runs_a_poll_keeps_the_advice_and_asks_for_none(
    watched: Watched, going_on: Run
) -> None:
    assert "20 GB" in words_of(watched, going_on)
    polled = client(watched.ada).get(f"/runs/{going_on.pk}", headers=POLL)
    kept = advice(page(polled))
    assert kept is not None
    assert ("hx-preserve" in kept.attrs, kept.words) == (True, "")
    asked = own_queries(watched, going_on, **POLL)
    assert len(asked) <= MOST_QUERIES, asked


def test_the_last_poll_brings_the_advice(watched: Watched, ended: Run) -> None:
    polled = client(watched.ada).get(f"/runs/{ended.pk}", headers=POLL)
    found = advice(page(polled))
    assert found is not None
    assert "20 GB" in found.words
    asked = own_queries(watched, ended, **POLL)
    assert len(asked) <= MOST_QUERIES, asked
