"""The smallest kind of GPU, a MIG slice or a whole one, with the memory that a template says it needs, and why."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.roles import Role
from fleet.models import Flavor
from provisioning.desired.first_job import Kind
from tests import factories
from tests.calling import Caller
from tests.qm.conftest import Signed, Terminal, signed, terminal
from tests.workloads.conftest import Watched
from tests.workloads.test_runs import ASKED
from tests.workloads.test_runs_api import body
from tests.workloads.test_runs_page import address, client, filled, form, page
from workloads.runs.planning.pools import Pool, Recommended, fitting, recommended
from workloads.template_desk import actions
from workloads.templates.library import BY_SLUG

__all__ = ["signed", "terminal"]

TEMPLATE = replace(BY_SLUG["single-node"], title="Adapt", gpu_memory=20)
RECIPE = "{slug: adapt, title: Adapt, help: Ours., shape: single-node, gpu_memory: 20}"
MIG = "nvidia.com/mig-2g.20gb"


def pool(
    name: str,
    memory: int,
    usd: str,
    *,
    resource: str = "nvidia.com/gpu",
    is_spot: bool = False,
) -> Pool:
    return Pool(
        kind=Kind(name, resource, {}, []),
        product="A100",
        gpus=2,
        borrow=0,
        per_node=8,
        usd_per_hour=Decimal(usd),
        memory=memory,
        is_spot=is_spot,
    )


SMALL = pool("small", 10, "0.5", resource="nvidia.com/mig-1g.10gb")
SLICE = pool("slice", 20, "1", resource=MIG)
WHOLE = pool("whole", 80, "3.7")


def best(
    chosen: str, *held: Pool, offered: tuple[Pool, ...] = (), are_together: bool = False
) -> Recommended:
    found = recommended(
        chosen,
        {one.kind.name: one for one in held},
        {one.kind.name: one for one in (*held, *offered)},
        TEMPLATE,
        are_together=are_together,
    )
    assert found is not None
    return found


def test_a_slice_with_enough_comes_before_a_whole_gpu() -> None:
    found = best("whole", SMALL, WHOLE, SLICE)
    assert (found.flavor, found.is_held, found.is_chosen) == ("slice", True, False)
    assert found.words == (
        "Adapt needs 20 GB of memory on a GPU. A slice of A100 with 20 GB has them and is the smallest that your team "
        "holds: take slice."
    )
    chosen = best("slice", SMALL, WHOLE, SLICE)
    assert chosen.is_chosen
    assert chosen.words.endswith(
        "Of what your team holds, a slice of A100 with 20 GB is the smallest that has them."
    )


def test_gpus_that_train_together_are_whole_ones() -> None:
    found = best("slice", SLICE, WHOLE, are_together=True)
    assert found.flavor == "whole"
    assert found.words.endswith(
        "Slices are left out: GPUs that train together have to be whole ones."
    )
    held = {"slice": SLICE, "whole": WHOLE}
    assert fitting(held, TEMPLATE) == "slice"
    assert fitting(held, TEMPLATE, are_together=True) == "whole"


def test_what_the_team_does_not_hold_is_named_where_it_alone_has_enough_or_costs_less() -> (
    None
):
    none = best("small", SMALL, offered=(WHOLE, SLICE))
    assert (none.flavor, none.is_held) == ("slice", False)
    assert none.words.endswith(
        "A slice of A100 with 20 GB has them for $1 an hour, and none of yours has."
    )
    less = best("whole", WHOLE, offered=(SLICE,))
    assert less.words.endswith("for $1 an hour, and your team's own cost $3.70.")
    more = best("whole", WHOLE, offered=(pool("dear", 40, "5"),))
    assert (more.flavor, more.is_held) == ("whole", True)


def test_without_a_need_or_without_gpus_nothing_is_recommended() -> None:
    held = {"whole": WHOLE}
    assert (
        recommended("whole", held, held, BY_SLUG["single-node"], are_together=False)
        is None
    )
    assert recommended("", held, held, TEMPLATE, are_together=False) is None
    assert (
        recommended(
            "small", {"small": SMALL}, {"small": SMALL}, TEMPLATE, are_together=False
        )
        is None
    )


@pytest.fixture
def slices(watched: Watched) -> Flavor:
    """Slices of 20 GB that the cluster offers, and a template that needs 20."""
    lead = factories.person("", Role.PLATFORM_LEAD)
    actions.keep(RECIPE, by=lead, now=timezone.now())
    return factories.flavor(
        watched.cluster,
        "a100-2g",
        memory_gb=20,
        resource=MIG,
        gpus_per_node=24,
        price_per_gpu_hour=Decimal("0.9"),
    )


@pytest.mark.slow
def test_page_and_api_say_which_and_why(watched: Watched, slices: Flavor) -> None:
    browser, caller = client(watched.ada), Caller(watched.ada)
    where = address(watched, template="adapt")
    opened = browser.get(where)
    assert form(opened)["flavor"] == "a100"
    typed = filled(opened, check="1", gpus="1")
    shown = browser.post(where, typed)
    assert "A slice of A100 with 20 GB has them for $0.90 an hour" in page(shown).words
    assert "flavor=training%2Fa100-2g" in shown.content.decode()
    asked = replace(ASKED, template="adapt", values={**ASKED.values, "gpus": 1})
    found = caller.post("runs/preview/", body(watched, asked)).json()["recommended"]
    assert (found["flavor"], found["is_slice"], found["is_held"], found["memory"]) == (
        "a100-2g",
        True,
        False,
        20,
    )

    factories.allocation(watched.ada, watched.tenancy, slices, gpus=2)

    opened = browser.get(where)
    assert form(opened)["flavor"] == "a100-2g"
    assert "A100 2g.20gb slice, 20 GB: 2 held" in page(opened).words
    sliced = replace(asked, flavor="a100-2g")
    made = caller.post("runs/", body(watched, sliced)).json()
    [job] = [one for one in made["manifests"] if one["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"][MIG] == "1"
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    plain = caller.post("runs/preview/", body(watched, ASKED)).json()
    assert plain["recommended"] is None


def test_too_little_memory_is_refused_with_what_has_enough(
    watched: Watched, slices: Flavor
) -> None:
    Flavor.objects.filter(pk=slices.pk).update(memory_gb=10)
    factories.allocation(watched.ada, watched.tenancy, slices, gpus=2)
    refused = Caller(watched.ada).post(
        "runs/", body(watched, replace(ASKED, template="adapt", flavor="a100-2g"))
    )
    assert (refused.status_code, refused.json()["code"]) == (422, "not_of_the_template")
    assert refused.json()["detail"] == (
        "Adapt needs 20 GB of memory on a GPU, and A100 2g.20gb slice has 10. Take a100: A100 with 80 GB."
    )


def test_the_client_takes_a_slice_for_one_and_whole_gpus_for_several(
    signed: Signed,
) -> None:
    watched, lead = signed.watched, factories.person("", Role.PLATFORM_LEAD)
    actions.keep(RECIPE, by=lead, now=timezone.now())
    flavor = factories.flavor(watched.cluster, "a100-2g", memory_gb=20, resource=MIG)
    factories.allocation(watched.ada, watched.tenancy, flavor, gpus=2)
    typed = (
        "train",
        "--image",
        "registry.example.com/vision/train:1",
        "--template",
        "adapt",
        "--dry-run",
    )
    one, two = (_gpus(signed.terminal, *typed, "--gpus", count) for count in ("1", "2"))
    assert one == "1 × a100-2g"
    assert two == "2 × a100"


def _gpus(terminal: Terminal, *typed: str) -> str:
    shown = terminal(*typed, "--", "train.py").stdout
    [line] = [one for one in shown.splitlines() if one.startswith("GPUs")]
    return line.removeprefix("GPUs").strip()
