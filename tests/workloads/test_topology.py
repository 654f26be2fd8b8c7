"""All nodes of a run in one rack or block: offered where the flavor has a topology, and told to Kueue."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from allocations.actions import grant
from provisioning import reconcile
from provisioning.delivery import client_for
from provisioning.desired.first_job import as_yaml
from tests import factories
from tests.calling import Caller
from tests.qm.conftest import Signed, signed, terminal
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.runs import run
from tests.workloads.test_runs import ASKED, submit, until
from tests.workloads.test_runs_api import body
from tests.workloads.test_runs_page import TYPED, address, client, filled, form, page
from workloads.models import ClusterAbility, Run
from workloads.runs import actions
from workloads.runs.planning.abilities import learn, topologies_of
from workloads.runs.planning.plan import Submission
from workloads.runs.shown import pods_of, seen_run
from workloads.templates.library import BY_SLUG, TEMPLATES
from workloads.templates.run import Topology

__all__ = ["signed", "terminal"]

GOLDEN = Path(__file__).parent / "golden" / "topology"
BLOCK, RACK, HOST = "cloud.example.com/block", "cloud.example.com/rack", "kubernetes.io/hostname"
KUEUE = "kueue.x-k8s.io/v1beta2"
REQUIRED, PREFERRED = (f"kueue.x-k8s.io/podset-{word}-topology" for word in ("required", "preferred"))
GATHERED = [one.slug for one in TEMPLATES if one.is_gathered]
ASKED_FOR_TWO = replace(
    ASKED,
    template="pytorch",
    values={**ASKED.values, "nodes": 2, "gpus": 1},
    topology={"level": RACK, "required": True},
)


@pytest.fixture
def racks(watched: Watched) -> Watched:
    """The team's flavor has a topology of blocks and racks, and the portal has seen it."""
    levels = [{"nodeLabel": one} for one in (BLOCK, RACK, HOST)]
    topology = {
        "apiVersion": KUEUE,
        "kind": "Topology",
        "metadata": {"name": "racks"},
        "spec": {"levels": levels},
    }
    watched.kubernetes.create(topology)
    watched.kubernetes.patch((KUEUE, "ResourceFlavor"), "a100", None, {"spec": {"topologyName": "racks"}})
    learn(now=timezone.now())
    return watched


@pytest.mark.parametrize("slug", GATHERED)
def test_each_template_of_several_nodes_renders_its_golden_file_with_a_rack(slug: str) -> None:
    template = BY_SLUG[slug]
    made = replace(run(template), topology=Topology(RACK))
    text = "---\n".join(as_yaml(each) for each in template.render(made))
    assert text == (GOLDEN / f"{slug}.yaml").read_text()
    plain = "---\n".join(as_yaml(each) for each in template.render(run(template)))
    added = [line.strip() for line in text.splitlines() if line not in plain.splitlines()]
    assert f"{REQUIRED}: {RACK}" in added


def test_there_is_a_golden_file_for_each_and_no_other() -> None:
    assert sorted(one.stem for one in GOLDEN.iterdir()) == sorted(GATHERED)


def test_the_portal_learns_the_levels_of_each_flavor(racks: Watched) -> None:
    assert ClusterAbility.objects.get().topologies == {"a100": [BLOCK, RACK, HOST]}
    [there] = Caller(racks.ada).get("places/").json()["results"]
    [flavor] = there["flavors"]
    assert flavor["levels"] == [BLOCK, RACK]


def test_a_cluster_whose_rights_are_older_has_none(racks: Watched) -> None:
    racks.kubernetes.fail("topologies", status=403)
    assert topologies_of(client_for(racks.cluster), ["a100"]) == {}


@pytest.mark.parametrize(("required", "word"), [(True, REQUIRED), (False, PREFERRED)])
def test_by_the_api_kueue_is_told(racks: Watched, required: bool, word: str) -> None:
    asked = replace(ASKED_FOR_TWO, topology={"level": RACK, "required": required})
    made = Caller(racks.ada).post("runs/", body(racks, asked))
    assert made.status_code == 201, made.content
    [jobset] = [one for one in made.json()["manifests"] if one["kind"] == "JobSet"]
    [worker] = jobset["spec"]["replicatedJobs"]
    assert worker["template"]["spec"]["template"]["metadata"]["annotations"] == {word: RACK}


@pytest.mark.parametrize(
    ("template", "level", "said"),
    [
        ("pytorch", HOST, f"has these levels: {BLOCK}, {RACK}"),
        ("pytorch", "example.com/nope", f"has these levels: {BLOCK}, {RACK}"),
        ("single-node", RACK, "has no pods that Kueue keeps close to each other"),
    ],
)
def test_what_there_is_not_is_refused(racks: Watched, template: str, level: str, said: str) -> None:
    values = ASKED_FOR_TWO.values if template == "pytorch" else ASKED.values
    asked = replace(ASKED_FOR_TWO, template=template, values=values, topology={"level": level})
    refused = Caller(racks.ada).post("runs/", body(racks, asked))
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_topology"), refused.content
    assert said in refused.json()["detail"]


def test_a_flavor_without_a_topology_refuses_and_its_form_offers_none(watched: Watched) -> None:
    learn(now=timezone.now())
    refused = Caller(watched.ada).post("runs/", body(watched, ASKED_FOR_TWO))
    assert "have no topology that Kueue knows" in refused.json()["detail"]
    assert "topology" not in form(client(watched.ada).get(address(watched, template="pytorch")))


def test_the_form_offers_the_levels_and_the_page_says_which(racks: Watched) -> None:
    ada, where = client(racks.ada), address(racks, template="pytorch")
    opened = ada.get(where)
    words = page(opened).words
    assert "All nodes in one rack" in words
    assert "In one block where there is room" in words
    assert "topology" not in form(ada.get(address(racks)))
    typed = filled(opened, gpus="1", nodes="2", topology=f"required:{RACK}")
    assert TYPED["image"] == typed["image"]
    answer = ada.post(where, typed)
    assert answer.status_code == 302, page(answer).words
    made = Run.objects.get()
    assert made.submission["topology"] == {"level": RACK, "required": True}
    assert "All nodes in one rack" in page(ada.get(f"/runs/{made.pk}")).words
    again = form(ada.get(f"/teams/{racks.team.slug}/runs/new?again={made.pk}"))
    assert again["topology"] == f"required:{RACK}"


@pytest.fixture
def three_nodes(racks: Watched) -> Watched:
    """Two of the nodes stand in one rack and the third in another; the team holds all their GPUs."""
    for name, rack in (("a100-0", "r0"), ("a100-1", "r1"), ("a100-2", "r1")):
        racks.kubernetes.patch(
            ("v1", "Node"), name, None, {"metadata": {"labels": {BLOCK: "b0", RACK: rack}}}
        )
    now, a100 = timezone.now(), racks.cluster.flavors.get(name="a100")
    until = now + timedelta(days=1)
    more = factories.granted(racks.ada, racks.tenancy, a100, gpus=22, until=until)
    grant(more, actor=racks.ada.as_actor(), now=now)
    racks.tenancy.refresh_from_db()
    reconcile.reconcile(racks.tenancy.pk, now=timezone.now)
    return racks


def of_nodes(count: int, *, required: bool = True) -> Submission:
    values = {**ASKED.values, "nodes": count, "gpus": 8, "cpus": 8}
    return replace(ASKED, template="pytorch", values=values, topology={"level": RACK, "required": required})


def test_its_pods_run_in_one_rack_and_what_no_rack_holds_says_so(three_nodes: Watched) -> None:
    with watching(three_nodes.kubernetes):
        wait_until(is_read, what="everything to be listed")
        run = submit(three_nodes, of_nodes(2), key="two")
        until(run, "running")
        assert {one.node for one in pods_of(run)} == {"a100-1", "a100-2"}
        actions.stop(run.pk, by=three_nodes.ada, now=timezone.now())
        until(run, "stopped")
        large = submit(three_nodes, of_nodes(3), key="three")
        until(large, "waiting")

        def why() -> Any:
            large.refresh_from_db()
            return seen_run(large, by=three_nodes.ada, now=timezone.now()).why

        wait_until(lambda: why() is not None and why().code == "never_together", what="its reason to be seen")
        assert "only 2 fit" in why().what
        actions.stop(large.pk, by=three_nodes.ada, now=timezone.now())
        until(large, "stopped")
        near = submit(three_nodes, of_nodes(3, required=False), key="near")
        until(near, "running")
        assert len({one.node for one in pods_of(near)}) == 3


def test_the_client_names_a_level_by_its_last_word(signed: Signed) -> None:
    ClusterAbility.objects.update(
        topologies={"a100": [BLOCK, RACK, HOST]}, kinds=["Job.batch/v1", "JobSet.jobset.x-k8s.io/v1alpha2"]
    )
    typed = ("train", "--image", "registry.example.com/vision/train:1", "--nodes", "2", "--gpus", "1")
    shown = signed.terminal(*typed, "--within", "rack", "--manifest", "--", "train.py")
    assert shown.exit_code == 0, shown.stderr
    assert f"{REQUIRED}" in shown.stdout
    near = signed.terminal(*typed, "--near", "block", "--manifest", "--", "train.py")
    assert PREFERRED in near.stdout
    assert f"{BLOCK}, {RACK}" in signed.terminal("places").stdout
    wrong = signed.terminal(*typed, "--within", "row", "--", "train.py")
    assert (wrong.exit_code, "has one level row" in wrong.stderr) == (2, True)


def test_the_golden_files_are_yaml() -> None:
    for one in GOLDEN.iterdir():
        assert [*yaml.safe_load_all(one.read_text())]
