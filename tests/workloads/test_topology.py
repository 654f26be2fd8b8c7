"""All nodes of a run in one rack or block: offered where the flavor has a topology, and told to Kueue."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from allocations.actions import grant
from connectors.kubernetes import Cluster
from provisioning import reconcile
from provisioning.delivery import client_for
from provisioning.desired.first_job import as_yaml
from sandbox.serving import Served, listen, port_of
from tests import factories
from tests.calling import Caller
from tests.qm.conftest import Signed, signed, terminal
from tests.services.process import wait_until
from tests.serving import serving
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.runs import A100, run
from tests.workloads.test_runs import ASKED, submit, until
from tests.workloads.test_runs_api import body
from tests.workloads.test_runs_page import TYPED, address, client, filled, form, page
from tests.workloads.test_templates import definition, shipped
from workloads.models import ClusterAbility, Run
from workloads.runs import actions
from workloads.runs.planning.abilities import (
    has_field,
    learn,
    schemas_of,
    topologies_of,
)
from workloads.runs.planning.plan import Submission
from workloads.runs.pods import pods_of
from workloads.runs.shown import seen_run
from workloads.templates.kubeflow import runtime
from workloads.templates.library import BY_SLUG, TEMPLATES, Abilities, without_topology
from workloads.templates.run import Topology

__all__ = ["signed", "terminal"]

GOLDEN = Path(__file__).parent / "golden" / "topology"
BLOCK, RACK, HOST = (
    "cloud.example.com/block",
    "cloud.example.com/rack",
    "kubernetes.io/hostname",
)
KUEUE = "kueue.x-k8s.io/v1beta2"
REQUIRED, PREFERRED = (
    f"kueue.x-k8s.io/podset-{word}-topology" for word in ("required", "preferred")
)
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
    watched.kubernetes.patch(
        (KUEUE, "ResourceFlavor"), "a100", None, {"spec": {"topologyName": "racks"}}
    )
    learn(now=timezone.now())
    return watched


@pytest.mark.parametrize("slug", GATHERED)
def test_each_template_of_several_nodes_renders_its_golden_file_with_a_rack(
    slug: str,
) -> None:
    template = BY_SLUG[slug]
    # Volcano's tiers have names of their own.
    level = "rack" if slug == "volcano" else RACK
    made = replace(run(template), topology=Topology(level))
    text = "---\n".join(as_yaml(each) for each in template.render(made))
    path = GOLDEN / f"{slug}.yaml"
    if os.environ.get("QM_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
    plain = "---\n".join(as_yaml(each) for each in template.render(run(template)))
    added = [
        line.strip() for line in text.splitlines() if line not in plain.splitlines()
    ]
    assert (
        "highestTierName: rack" if slug == "volcano" else f"{REQUIRED}: {RACK}"
    ) in added


@pytest.mark.parametrize("slug", GATHERED)
@pytest.mark.parametrize("is_required", [True, False])
def test_what_says_how_close_fits_the_definitions_that_the_projects_ship(
    slug: str, is_required: bool
) -> None:
    made = replace(run(BY_SLUG[slug]), topology=Topology("rack", is_required))
    manifest = BY_SLUG[slug].render(made)[-1]
    errors = definition(manifest).iter_errors(manifest | {"metadata": {}})
    assert [error.message for error in errors] == []


def test_a_trainjob_annotates_the_pods_of_its_runtime_by_a_patch_of_the_portals_own() -> (
    None
):
    made = replace(run(BY_SLUG["trainjob"]), topology=Topology(RACK))
    [patch] = BY_SLUG["trainjob"].render(made)[-1]["spec"]["runtimePatches"]
    # Kueue's own patch has its name, and a webhook refuses a manager that is no path with a domain.
    assert patch["manager"] == "quartermaster.io/runs"
    [job] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    [there] = runtime(A100, image="x:1")["spec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == there["name"]
    assert job["template"]["spec"]["template"]["metadata"] == {
        "annotations": {REQUIRED: RACK}
    }


def test_volcano_reads_a_tier_where_it_is_a_must_and_takes_the_closest_nodes_otherwise() -> (
    None
):
    template = BY_SLUG["volcano"]
    must, near = (
        template.render(replace(run(template), topology=Topology("rack", is_required)))[
            -1
        ]["spec"]
        for is_required in (True, False)
    )
    assert must["networkTopology"] == {"mode": "hard", "highestTierName": "rack"}
    assert near["networkTopology"] == {"mode": "soft"}
    assert "kueue" not in str(must)


@pytest.mark.parametrize("slug", ["trainjob", "volcano"])
def test_a_cluster_of_an_earlier_release_is_told_apart_with_a_sentence(
    slug: str,
) -> None:
    template = BY_SLUG[slug]
    known = Abilities(
        {template.kind},
        None,
        template.queueing,
        fields={template.kind: [template.topology_field]},
    )
    assert without_topology(template, known) == ""
    said = without_topology(template, replace(known, fields={template.kind: []}))
    assert f"finds no field {template.topology_field} in a " in said


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
    assert worker["template"]["spec"]["template"]["metadata"]["annotations"] == {
        word: RACK
    }


@pytest.mark.parametrize(
    ("template", "level", "said"),
    [
        ("pytorch", HOST, f"has these levels: {BLOCK}, {RACK}"),
        ("pytorch", "example.com/nope", f"has these levels: {BLOCK}, {RACK}"),
        ("single-node", RACK, "has no pods that compute together"),
    ],
)
def test_what_there_is_not_is_refused(
    racks: Watched, template: str, level: str, said: str
) -> None:
    values = ASKED_FOR_TWO.values if template == "pytorch" else ASKED.values
    asked = replace(
        ASKED_FOR_TWO, template=template, values=values, topology={"level": level}
    )
    refused = Caller(racks.ada).post("runs/", body(racks, asked))
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_topology"), (
        refused.content
    )
    assert said in refused.json()["detail"]


def test_a_flavor_without_a_topology_refuses_and_its_form_offers_none(
    watched: Watched,
) -> None:
    learn(now=timezone.now())
    refused = Caller(watched.ada).post("runs/", body(watched, ASKED_FOR_TWO))
    assert "have no topology that Kueue knows" in refused.json()["detail"]
    assert "topology" not in form(
        client(watched.ada).get(address(watched, template="pytorch"))
    )


@pytest.mark.slow
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


TRAINJOB = BY_SLUG["trainjob"].kind
FOR_TRAINJOB = replace(
    ASKED_FOR_TWO,
    template="trainjob",
    script=None,
    values={
        "image": ASKED.values["image"],
        "program": ["train.py"],
        "nodes": 2,
        "gpus": 1,
    },
)


def served_with(*fields: str) -> None:
    """The cluster has TrainJobs of a release that has these fields."""
    ClusterAbility.objects.update(
        kinds=[TRAINJOB],
        integrations=None,
        schemas={TRAINJOB: {"address": "/openapi/v3/x", "fields": fields}},
    )


def test_a_trainjob_keeps_its_nodes_in_a_rack_where_its_release_can(
    racks: Watched,
) -> None:
    served_with("runtimePatches")
    caller = Caller(racks.ada)
    shown = caller.post("runs/preview/", body(racks, FOR_TRAINJOB)).json()
    assert shown["problems"] == []
    [patch] = shown["manifests"][-1]["spec"]["runtimePatches"]
    assert f"'{REQUIRED}': '{RACK}'" in str(patch)
    assert offered_to(caller)["trainjob"] == ""
    assert (
        "All nodes in one rack"
        in page(client(racks.ada).get(address(racks, template="trainjob"))).words
    )


def test_form_and_api_say_why_a_trainjob_of_an_earlier_release_cannot(
    racks: Watched,
) -> None:
    served_with()
    why = (
        "The portal finds no field runtimePatches in a TrainJob of this cluster, which would say how close its nodes "
        "are: a platform lead updates the controller of trainer.kubeflow.org."
    )
    caller = Caller(racks.ada)
    refused = caller.post("runs/", body(racks, FOR_TRAINJOB))
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_topology"), (
        refused.content
    )
    assert refused.json()["detail"] == f"{why} Leave the topology out."
    told = offered_to(caller)
    assert told["trainjob"] == why
    assert "no pods that compute together" in told["single-node"]
    assert told["pytorch"] == ""
    opened = client(racks.ada).get(address(racks, template="trainjob"))
    assert why in page(opened).words
    assert "topology" not in form(opened)


def test_the_form_says_nothing_of_it_where_the_nodes_have_no_topology(
    watched: Watched,
) -> None:
    learn(now=timezone.now())
    served_with()
    opened = client(watched.ada).get(address(watched, template="trainjob"))
    assert "how close" not in page(opened).words


def offered_to(caller: Caller) -> dict[str, str]:
    [there] = caller.get("places/").json()["results"]
    return {one["slug"]: one["no_topology"] for one in there["templates"]}


@dataclass
class Schemas:
    """A server that shows the schemas of TrainJobs; `release` is in their address, `asked` are the paths of calls."""

    folder: Path
    release: str = "1"
    fields: tuple[str, ...] = ("suspend",)
    is_forbidden: bool = False
    asked: list[str] = field(default_factory=list)
    port: int = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        self.asked.append(scope["path"])
        status, answer = (403, {}) if self.is_forbidden else (200, self.answer(scope))
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def answer(self, scope: Any) -> dict[str, Any]:
        group = "apis/trainer.kubeflow.org/v1alpha1"
        if scope["path"] == "/openapi/v3":
            where = f"/openapi/v3/{group}?hash={self.release}"
            return {
                "paths": {
                    group: {"serverRelativeURL": where},
                    "version": {"serverRelativeURL": "/x"},
                }
            }
        assert (scope["path"], scope["query_string"]) == (
            f"/openapi/v3/{group}",
            f"hash={self.release}".encode(),
        )
        spec = {"properties": {one: {"type": "array"} for one in self.fields}}
        kind = [
            {"group": "trainer.kubeflow.org", "kind": "TrainJob", "version": "v1alpha1"}
        ]
        found = {"properties": {"spec": spec}, "x-kubernetes-group-version-kind": kind}
        return {
            "components": {
                "schemas": {
                    "Status": {},
                    "org.kubeflow.trainer.v1alpha1.TrainJob": found,
                }
            }
        }

    @property
    def client(self) -> Cluster:
        path = self.folder / "kubeconfig.yaml"
        named = {"cluster": "it", "user": "it"}
        config = {
            "current-context": "it",
            "clusters": [
                {"name": "it", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
            ],
            "users": [{"name": "it", "user": {"token": "portal"}}],
            "contexts": [{"name": "it", "context": named}],
        }
        path.write_text(yaml.safe_dump(config))
        return Cluster.from_kubeconfig(path)


@pytest.fixture
def schemas(tmp_path: Path) -> Iterator[Schemas]:
    bound = listen(0)
    found = Schemas(tmp_path, port=port_of(bound))
    with serving(Served(found, bound, None)):
        yield found


def test_the_portal_learns_which_fields_a_release_has_and_reads_them_once(
    schemas: Schemas,
) -> None:
    assert schemas_of(schemas.client, ["Job.batch/v1"], {}) == {}
    assert schemas.asked == []
    first = schemas_of(schemas.client, [TRAINJOB], {})
    assert first[TRAINJOB]["fields"] == []
    assert schemas_of(schemas.client, [TRAINJOB], first) == first
    assert len(schemas.asked) == 3

    schemas.release, schemas.fields = "2", ("suspend", "runtimePatches")

    assert schemas_of(schemas.client, [TRAINJOB], first)[TRAINJOB]["fields"] == [
        "runtimePatches"
    ]


def test_a_cluster_that_shows_no_schemas_has_no_such_field(schemas: Schemas) -> None:
    assert schemas_of(schemas.client, ["Job.batch.volcano.sh/v1alpha1"], {}) == {}
    schemas.is_forbidden = True
    assert schemas_of(schemas.client, [TRAINJOB], {}) == {}


@pytest.mark.parametrize("slug", ["trainjob", "volcano"])
def test_the_definitions_of_today_have_the_fields(slug: str) -> None:
    template = BY_SLUG[slug]
    manifest = template.render(run(template))[-1]
    definition(manifest)
    schema = shipped(manifest["apiVersion"], manifest["kind"]).schema
    assert has_field(schema, f"spec.{template.topology_field}")
    assert not has_field(schema, "spec.networkTopology.suspended")


@pytest.fixture
def three_nodes(racks: Watched) -> Watched:
    """Two of the nodes stand in one rack and the third in another; the team holds all their GPUs."""
    for name, rack in (("a100-0", "r0"), ("a100-1", "r1"), ("a100-2", "r1")):
        racks.kubernetes.patch(
            ("v1", "Node"),
            name,
            None,
            {"metadata": {"labels": {BLOCK: "b0", RACK: rack}}},
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
    return replace(
        ASKED,
        template="pytorch",
        values=values,
        topology={"level": RACK, "required": required},
    )


@pytest.mark.slow
def test_its_pods_run_in_one_rack_and_what_no_rack_holds_says_so(
    three_nodes: Watched,
) -> None:
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

        wait_until(
            lambda: why() is not None and why().code == "never_together",
            what="its reason to be seen",
        )
        assert "only 2 fit" in why().what
        actions.stop(large.pk, by=three_nodes.ada, now=timezone.now())
        until(large, "stopped")
        near = submit(three_nodes, of_nodes(3, required=False), key="near")
        until(near, "running")
        assert len({one.node for one in pods_of(near)}) == 3


def test_the_client_names_a_level_by_its_last_word(signed: Signed) -> None:
    ClusterAbility.objects.update(
        topologies={"a100": [BLOCK, RACK, HOST]},
        kinds=["Job.batch/v1", "JobSet.jobset.x-k8s.io/v1alpha2"],
    )
    typed = (
        "train",
        "--image",
        "registry.example.com/vision/train:1",
        "--nodes",
        "2",
        "--gpus",
        "1",
    )
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
