"""The files of a repository: the bytes that are applied elsewhere, in folders that are ours and in no other."""

import io
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import urllib3
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.client import Configuration

from connectors.kubernetes import Cluster, rendered
from provisioning.desired.manifests import fleet_objects, tenancy_objects
from provisioning.desired.naming import namespace_of
from provisioning.desired.objects import Manifest
from provisioning.desired.spec import TenancySpec
from provisioning.git.repository import (
    INDEX,
    MARK,
    Changes,
    PathRefused,
    file_name,
    shared_changes,
    tenancy_changes,
    tenancy_folder,
    tenancy_removal,
)
from tests.provisioning.specs import SAMPLE, sample, specs

TAINT = {"key": "sku", "effect": "NoSchedule"}
FLEET = fleet_objects(
    cohort="quartermaster",
    flavors=[("a100-80gb", {"accelerator": "nvidia-a100"}, [TAINT])],
)
SPEECH = sample(
    tenancy=8, team="speech", namespace=namespace_of(team="speech", project="detection")
)
KUBECTL = shutil.which("kubectl")


class Tree(dict[str, bytes]):
    """A repository in memory."""

    def read(self, path: str) -> bytes | None:
        if any(other.startswith(f"{path}/") for other in self):
            raise ValueError(path)
        self._no_file_above(path)
        return self.get(path)

    def names(self, folder: str) -> list[str]:
        if folder in self:
            raise ValueError(folder)
        self._no_file_above(folder)
        return sorted(
            {
                path[len(folder) + 1 :].split("/")[0]
                for path in self
                if path.startswith(f"{folder}/")
            }
        )

    def changed(self, changes: Changes) -> "Tree":
        kept = {
            path: content
            for path, content in self.items()
            if changes.get(path, content) is not None
        }
        return Tree(
            kept
            | {
                path: content
                for path, content in changes.items()
                if content is not None
            }
        )

    def _no_file_above(self, path: str) -> None:
        if any(str(above) in self for above in PurePosixPath(path).parents):
            raise ValueError(path)


def put(tree: Tree, spec: TenancySpec = SAMPLE, cluster: str = "training") -> Tree:
    return tree.changed(changes(tree, spec, cluster))


def changes(
    tree: Tree, spec: TenancySpec = SAMPLE, cluster: str = "training"
) -> Changes:
    return tenancy_changes(
        tree,
        cluster=cluster,
        namespace=spec.namespace,
        owner=spec.tenancy,
        manifests=tenancy_objects(spec),
    )


def shared(
    tree: Tree, cluster: str = "training", manifests: list[Manifest] = FLEET
) -> Tree:
    return tree.changed(shared_changes(tree, cluster=cluster, manifests=manifests))


def built(tree: Mapping[str, bytes], folder: str) -> list[Any]:
    """What kustomize makes of a folder, by the rules by which it refuses one."""
    found = yaml.load(tree[f"{folder}/{INDEX}"], Loader=yaml.CSafeLoader)
    assert set(found) == {"apiVersion", "kind", "resources"}
    assert (found["apiVersion"], found["kind"]) == (
        "kustomize.config.k8s.io/v1beta1",
        "Kustomization",
    )
    assert found["resources"]
    assert len(set(found["resources"])) == len(found["resources"])
    made = []
    for name in found["resources"]:
        parts: list[str] = []
        for part in f"{folder}/{name}".split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        path = "/".join(parts)
        made += (
            [yaml.load(tree[path], Loader=yaml.CSafeLoader)]
            if path in tree
            else built(tree, path)
        )
    ids = [
        (
            o["apiVersion"],
            o["kind"],
            o["metadata"].get("namespace"),
            o["metadata"]["name"],
        )
        for o in made
    ]
    assert len(set(ids)) == len(ids)
    return made


@pytest.mark.slow
@given(spec=specs())
@settings(max_examples=60)
def test_what_is_committed_is_what_is_applied_byte_by_byte(spec: TenancySpec) -> None:
    manifests = tenancy_objects(spec)
    tree = put(shared(Tree()), spec)
    folder = tenancy_folder("training", spec.namespace)
    for manifest in manifests:
        committed = tree[f"{folder}/{file_name(manifest)}"]
        assert committed == rendered(manifest)
        assert (
            yaml.load(committed, Loader=yaml.CSafeLoader)
            == json.loads(committed)
            == manifest
        )
    ours = built(tree, folder)
    assert sorted(map(rendered, ours)) == sorted(map(rendered, manifests))
    assert changes(tree, spec) == {}
    again = TenancySpec.from_json(
        json.loads(json.dumps(spec.to_json(), sort_keys=True))
    )
    assert put(shared(Tree()), again) == tree


@pytest.mark.slow
@given(spec=specs())
@settings(max_examples=25)
def test_what_leaves_by_the_socket_is_what_is_committed(spec: TenancySpec) -> None:
    sent: list[bytes] = []

    def take(
        _pool: object, _method: str, _url: str, body: bytes, *_: Any, **__: Any
    ) -> urllib3.HTTPResponse:
        sent.append(body)
        return urllib3.HTTPResponse(io.BytesIO(body), status=200)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(urllib3.HTTPConnectionPool, "urlopen", take)
        client = Cluster(Configuration(host="https://cluster.invalid"))
        for manifest in tenancy_objects(spec):
            client.apply(manifest)
    tree, folder = put(shared(Tree()), spec), tenancy_folder("training", spec.namespace)
    committed = [tree[f"{folder}/{name}"] for name in tree_names(tree, folder)]
    assert sorted(sent) == sorted(committed)


def tree_names(tree: Tree, folder: str) -> list[str]:
    return [name for name in tree.names(folder) if name != INDEX]


def test_a_cluster_is_one_kustomization_and_so_is_each_part() -> None:
    tree = put(put(shared(Tree()), SAMPLE), SPEECH)
    everything = (
        len(FLEET) + len(tenancy_objects(SAMPLE)) + len(tenancy_objects(SPEECH))
    )
    assert len(built(tree, "clusters/training")) == everything
    assert len(built(tree, "clusters/training/cluster")) == len(FLEET)
    assert len(built(tree, "clusters/training/tenancies")) == everything - len(FLEET)
    assert {o["kind"] for o in built(tree, "base")} <= {
        "ResourceFlavor",
        "WorkloadPriorityClass",
        "PriorityClass",
    }


def test_what_is_the_same_everywhere_is_there_once() -> None:
    other = fleet_objects(cohort="another", flavors=[])
    tree = shared(shared(Tree()), "inference", other)
    assert [
        path
        for path in tree
        if "priorityclass" in path and not path.startswith("base/")
    ] == []
    assert len(built(tree, "clusters/inference")) == len(other)
    assert shared_changes(tree, cluster="training", manifests=FLEET) == {}


def test_order_is_that_of_creation() -> None:
    tree = put(shared(Tree()))
    kinds = [o["kind"] for o in built(tree, "clusters/training")]
    first = {kind: kinds.index(kind) for kind in kinds}
    order = [
        "ResourceFlavor",
        "Cohort",
        "ClusterQueue",
        "Namespace",
        "ResourceQuota",
        "LocalQueue",
        "PersistentVolumeClaim",
    ]
    assert sorted(order, key=first.__getitem__) == order


def test_a_change_touches_the_files_that_differ_and_nobody_elses() -> None:
    tree = Tree(
        {"README.md": b"theirs", "clusters/training/tenancies/notes.txt": b"theirs"}
    )
    tree = put(shared(tree))
    more = sample(base_cpu=SAMPLE.base_cpu + 1)
    assert sorted(
        path.rpartition("/")[2].split("-")[0] for path in changes(tree, more)
    ) == [
        "clusterqueue",
        "resourcequota",
    ]
    tree = put(tree, more)
    assert (tree["README.md"], tree["clusters/training/tenancies/notes.txt"]) == (
        b"theirs",
        b"theirs",
    )
    assert changes(tree, more) == {}


def test_what_is_no_longer_wanted_goes_but_never_a_namespace_or_a_claim() -> None:
    tree = put(shared(Tree()))
    folder = tenancy_folder("training", SAMPLE.namespace)
    fewer = [
        o
        for o in tenancy_objects(SAMPLE)
        if o["kind"] not in ("PersistentVolumeClaim", "LimitRange", "Namespace")
    ]
    found = tenancy_changes(
        tree, cluster="training", namespace=SAMPLE.namespace, owner=7, manifests=fewer
    )
    assert [path for path, content in found.items() if content is None] == [
        f"{folder}/limitrange-team-defaults.json"
    ]
    kinds = {o["kind"] for o in built(tree.changed(found), folder)}
    assert {"PersistentVolumeClaim", "Namespace"} <= kinds
    assert "LimitRange" not in kinds


def test_both_carry_the_marks_that_keep_them_from_being_pruned() -> None:
    guarded = {
        o["kind"] for o in tenancy_objects(SAMPLE) if o["metadata"].get("annotations")
    }
    assert guarded == {"Namespace", "PersistentVolumeClaim"}
    marks = tenancy_objects(SAMPLE)[0]["metadata"]["annotations"]
    assert marks["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
    assert marks["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"


def test_a_team_that_left_leaves_no_list_that_leads_nowhere() -> None:
    tree = put(put(shared(Tree()), SAMPLE), SPEECH)
    tree[f"{tenancy_folder('training', SAMPLE.namespace)}/mine.txt"] = b"theirs"
    tree = tree.changed(
        tenancy_removal(tree, cluster="training", namespace=SAMPLE.namespace, owner=7)
    )
    assert len(built(tree, "clusters/training")) == len(FLEET) + len(
        tenancy_objects(SPEECH)
    )
    assert [path for path in tree if SAMPLE.namespace in path] == [
        f"clusters/training/tenancies/{SAMPLE.namespace}/mine.txt"
    ]
    assert (
        tenancy_removal(tree, cluster="training", namespace=SAMPLE.namespace, owner=7)
        == {}
    )
    tree = tree.changed(
        tenancy_removal(tree, cluster="training", namespace=SPEECH.namespace, owner=8)
    )
    assert len(built(tree, "clusters/training")) == len(FLEET)


def test_a_folder_goes_only_for_its_own_tenancy() -> None:
    with pytest.raises(PathRefused):
        tenancy_removal(
            put(Tree()), cluster="training", namespace=SAMPLE.namespace, owner=70
        )


@pytest.mark.parametrize(
    "path",
    [
        INDEX,
        f"namespace-{SAMPLE.namespace}.json",
        "localqueue-default.json/x",
        "../" + INDEX,
        "../../" + INDEX,
    ],
)
def test_what_lies_in_our_place_and_is_not_ours_is_refused_in_words(path: str) -> None:
    folder = PurePosixPath(tenancy_folder("training", SAMPLE.namespace))
    while path.startswith("../"):
        folder, path = folder.parent, path[3:]
    theirs = Tree(
        {
            f"{folder}/{path}": b'{"kind": "Namespace", "metadata": {"labels": {"team": "x"}}}'
        }
    )
    with pytest.raises(PathRefused, match="is not ours; it was not touched"):
        changes(theirs)


@pytest.mark.parametrize(
    "path", ["clusters", "clusters/training", "clusters/training/tenancies", "base"]
)
def test_a_file_where_a_folder_of_ours_should_be_is_refused(path: str) -> None:
    with pytest.raises(PathRefused):
        put(shared(Tree({path: b"x"})))


def test_another_tenancys_folder_or_object_is_not_ours() -> None:
    tree = put(Tree())
    with pytest.raises(PathRefused):
        changes(tree, sample(tenancy=70))
    path = (
        f"{tenancy_folder('training', SAMPLE.namespace)}/resourcequota-team-quota.json"
    )
    tree[path] = tree[path].replace(
        b'"quartermaster.io/tenancy": "7"', b'"quartermaster.io/tenancy": "9"'
    )
    with pytest.raises(PathRefused):
        changes(tree)


def test_what_people_or_a_bad_merge_did_to_our_files_is_put_right() -> None:
    good = put(shared(Tree()))
    folder = tenancy_folder("training", SAMPLE.namespace)
    quota = f"{folder}/resourcequota-team-quota.json"
    tree = Tree(good)
    tree[quota] = b"<<<<<<< HEAD\n" + good[quota] + b"=======\n>>>>>>> theirs\n"
    tree[f"clusters/training/tenancies/{INDEX}"] = (
        f"{MARK}\n<<<<<<< HEAD\nresources: []\n=======\n".encode()
    )
    tree[f"{folder}/{INDEX}"] += b"- ../../../../elsewhere\n"
    del tree[f"{folder}/localqueue-default.json"]
    assert put(tree) == good
    tree[quota] = good[quota].replace(b'"pods"', b'"podss"')
    assert put(tree) == good


def test_a_foreign_file_that_our_list_was_made_to_name_is_left_and_no_longer_named() -> (
    None
):
    good = put(shared(Tree()))
    folder = tenancy_folder("training", SAMPLE.namespace)
    tree = Tree(good)
    tree[f"{folder}/{INDEX}"] += b"- secret.json\n"
    tree[f"{folder}/secret.json"] = b'{"kind": "Secret", "metadata": {}}'
    after = put(tree)
    assert after[f"{folder}/secret.json"] == tree[f"{folder}/secret.json"]
    assert after[f"{folder}/{INDEX}"] == good[f"{folder}/{INDEX}"]


@given(
    st.text(max_size=40)
    | st.sampled_from(
        ["..", "a/../b", "-x", "a\nb", "a/b", ".git", "a..b", "A", "", "a\x00"]
    )
)
def test_a_hostile_name_never_becomes_a_path(name: str) -> None:
    try:
        folder = tenancy_folder("training", name)
    except PathRefused:
        return
    assert re.fullmatch(r"clusters/training/tenancies/[a-z0-9][a-z0-9.-]*", folder)
    assert ".." not in folder


@pytest.mark.skipif(
    KUBECTL is None,
    reason="kubectl is not installed; the rules of kustomize are checked by built()",
)
def test_kubectl_builds_it(tmp_path: Path) -> None:
    tree = put(put(shared(Tree())), SPEECH)
    for path, content in tree.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    done = subprocess.run(
        [str(KUBECTL), "kustomize", str(tmp_path / "clusters" / "training")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    made = [rendered(one) for one in yaml.safe_load_all(done.stdout)]
    assert sorted(made) == sorted(
        rendered(one) for one in built(tree, "clusters/training")
    )
