"""The portal's own manifests, as Kustomize renders them for an installation.

They run the same commands as Compose, may do nothing where they run, and hold no secret.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.urls import resolve
from gunicorn.config import Config
from kubernetes.client import V1PodDisruptionBudgetSpec

from portal.env import Environment, read
from sandbox.kubernetes import pod_security, schema, validation, validation_pods
from sandbox.kubernetes.kinds import Kind, by_kind
from scripts.packages import ROOT
from tests.test_containers import SERVICES

BASE, EXAMPLE = ROOT / "deploy/portal/base", ROOT / "deploy/portal/example"
PARTS = ("web", "worker", "beat", "watcher")
INSTALLING = (ROOT / "docs/how-to/install-on-kubernetes.md").read_text()
# What the name of a generated ConfigMap ends with, so that pods start anew when it changes.
HASH = re.compile(r"-[a-z0-9]{10}$")
PART_OF, COMPONENT = "app.kubernetes.io/part-of", "app.kubernetes.io/component"
Manifest = dict[str, Any]


def listed(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return found


def rendered(folder: Path) -> list[Manifest]:
    """What `kubectl apply -k` sends; by the kubectl of requirements/dev.in, wherever the tests are started."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    kubectl = shutil.which("kubectl", path=path)
    assert kubectl, "there is no kubectl: scripts/venv.sh dev installs it"
    command = [kubectl, "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return [*yaml.safe_load_all(done.stdout)]


EVERYTHING = rendered(EXAMPLE)


def named(kind: str, name: str) -> Manifest:
    return next(
        one
        for one in EVERYTHING
        if (one["kind"], one["metadata"]["name"]) == (kind, name)
    )


def pod_of(name: str) -> Manifest:
    spec: Manifest = named("Deployment", name)["spec"]["template"]["spec"]
    return spec


def container(name: str) -> Manifest:
    [found] = pod_of(name)["containers"]
    return dict(found)


def every_container() -> Iterator[tuple[str, Manifest]]:
    for name in (*PARTS, "redis"):
        pod = pod_of(name)
        for each in [*pod.get("initContainers", []), *pod["containers"]]:
            yield f"{name}/{each['name']}", each


def test_an_installation_has_all_of_the_base() -> None:
    def names(manifests: list[Manifest]) -> set[tuple[str, str]]:
        return {
            (one["kind"], HASH.sub("", one["metadata"]["name"])) for one in manifests
        }

    base = names(rendered(BASE))
    assert len(base) >= 15
    assert names(EVERYTHING) - base == {
        ("ConfigMap", "settings"),
        ("HTTPRoute", "web"),
        ("NetworkPolicy", "the-gateway-calls-web"),
    }


def test_everything_is_in_the_portal_s_namespace() -> None:
    [namespace] = [
        one["metadata"]["name"] for one in EVERYTHING if one["kind"] == "Namespace"
    ]
    elsewhere = [
        f"{one['kind']} {one['metadata']['name']}"
        for one in EVERYTHING
        if one["kind"] != "Namespace" and one["metadata"]["namespace"] != namespace
    ]
    assert elsewhere == []


def test_only_images_that_the_installation_names_are_run() -> None:
    images = {name: one["image"] for name, one in every_container()}
    assert images.pop("redis/redis") == "redis:7.4-bookworm"
    assert {*images.values()} == {"acme.azurecr.io/quartermaster:1.0.0"}


@pytest.mark.parametrize("name", [*PARTS, "redis"])
def test_what_a_pod_needs_is_there_or_one_of_the_secrets_that_are_made_first(
    name: str,
) -> None:
    there = {(one["kind"], one["metadata"]["name"]) for one in EVERYTHING}
    made = re.findall(r"create secret generic (\w+)", INSTALLING)
    there |= {("Secret", each) for each in made}
    assert {*references(pod_of(name))} - there == set()


def references(pod: Manifest) -> Iterator[tuple[str, str]]:
    """Each Secret and ConfigMap without which the pod does not start."""
    for one in [*pod.get("initContainers", []), *pod["containers"]]:
        for each in one.get("envFrom", []):
            yield "ConfigMap", each["configMapRef"]["name"]
        for each in one.get("env", []):
            yield "Secret", each["valueFrom"]["secretKeyRef"]["name"]
    for volume in pod["volumes"]:
        for each in [volume, *volume.get("projected", {}).get("sources", [])]:
            secret, config = each.get("secret", {}), each.get("configMap", {})
            if secret and not secret.get("optional"):
                yield "Secret", secret.get("secretName") or secret["name"]
            if config and not config.get("optional"):
                yield "ConfigMap", config["name"]


@pytest.mark.parametrize("folder", [BASE, EXAMPLE], ids=["base", "example"])
def test_every_file_of_a_folder_is_in_its_kustomization(folder: Path) -> None:
    there = {one.name for one in folder.glob("*.yaml")} - {"kustomization.yaml"}
    patches = {one["path"] for one in listed(folder)["patches"] if "path" in one}
    assert patches | {*listed(folder)["resources"]} - {"../base"} == there


KNOWN = [
    (kind, one)
    for one in EVERYTHING
    if (kind := by_kind(one["apiVersion"], one["kind"])) is not None
]


@pytest.mark.parametrize(
    ("kind", "manifest"),
    [
        pytest.param(*one, id=f"{one[1]['kind']} {one[1]['metadata']['name']}")
        for one in KNOWN
    ],
)
def test_kubernetes_knows_every_field_and_refuses_none(
    kind: Kind, manifest: Manifest
) -> None:
    assert [str(error) for error in schema.errors(kind, manifest)] == []
    assert schema.strict_unknown_fields(kind, manifest) == []
    assert validation.create_causes(kind, manifest) == []


def test_the_sandbox_knows_most_of_the_kinds() -> None:
    unknown = {one["kind"] for one in EVERYTHING} - {one["kind"] for _, one in KNOWN}
    assert unknown <= {"PodDisruptionBudget", "HTTPRoute"}


@pytest.mark.parametrize("name", PARTS)
def test_each_part_runs_what_it_runs_with_compose(name: str) -> None:
    assert container(name).get("command") == SERVICES[name].get("command")


def test_the_database_is_migrated_as_with_compose_and_by_one_pod_at_a_time() -> None:
    [migrate] = pod_of("beat")["initContainers"]
    assert migrate["command"] == SERVICES["migrate"]["command"]
    spec = named("Deployment", "beat")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


@pytest.mark.parametrize("name", sorted({*PARTS} - {"beat"}))
def test_nothing_else_starts_before_the_database_is_migrated(name: str) -> None:
    [waits] = pod_of(name)["initContainers"]
    assert "until python manage.py migrate --check" in waits["command"][-1]


def test_only_what_migrates_sees_the_login_that_owns_the_tables() -> None:
    owners = {
        (name, volume["name"])
        for name in PARTS
        for volume in pod_of(name)["volumes"]
        if "owner" in str(volume)
    }
    assert owners == {("beat", "secrets-of-owner")}
    seen_by = {
        name
        for name, one in every_container()
        if "secrets-of-owner" in str(one["volumeMounts"])
    }
    assert seen_by == {"beat/migrate"}


@pytest.mark.parametrize(
    "one", [pytest.param(one, id=name) for name, one in every_container()]
)
def test_each_container_may_do_nothing_and_has_bounds(one: Manifest) -> None:
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert one["resources"]["limits"].keys() == {"memory"}
    assert one["resources"]["requests"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize("name", [*PARTS, "redis"])
def test_each_pod_fits_the_restricted_standard_and_has_no_rights(name: str) -> None:
    """Pod Security Standards, restricted: https://kubernetes.io/docs/concepts/security/pod-security-standards/."""
    pod = pod_of(name)
    namespace = named("Namespace", "quartermaster-portal")
    label = f"{pod_security.LABEL}enforce"
    assert namespace["metadata"]["labels"][label] == "restricted"
    assert pod_security.refusal(namespace, pod) == ""
    made = {"spec": {"restartPolicy": "Always", **pod}}
    assert validation_pods.validate_pod(made) == []
    assert pod["automountServiceAccountToken"] is False
    kinds = {kind for each in pod["volumes"] for kind in each if kind != "name"}
    assert kinds <= {"emptyDir", "secret", "configMap", "projected"}
    assert all(
        "sizeLimit" in each.get("emptyDir", ["sizeLimit"]) for each in pod["volumes"]
    )


def test_the_image_runs_as_its_own_user() -> None:
    user = re.search(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert user is not None
    for name in PARTS:
        assert pod_of(name)["securityContext"]["runAsUser"] == int(user[1]), name


@pytest.mark.parametrize("name", PARTS)
def test_selectors_find_the_pods_of_their_own_part_alone(name: str) -> None:
    spec = named("Deployment", name)["spec"]
    marks = {PART_OF: "quartermaster", COMPONENT: name}
    assert spec["selector"]["matchLabels"] == marks
    assert marks.items() <= spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("name", sorted({*PARTS} - {"beat"}))
def test_the_pods_of_a_part_and_version_are_spread_over_nodes_and_zones(
    name: str,
) -> None:
    spread = pod_of(name)["topologySpreadConstraints"]
    places = [one["topologyKey"] for one in spread]
    assert places == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    labels = named("Deployment", name)["spec"]["template"]["metadata"]["labels"]
    for one in spread:
        assert one["labelSelector"]["matchLabels"].items() <= labels.items()
        assert one["matchLabelKeys"] == [COMPONENT, "pod-template-hash"]
        # A cluster of one node, or of one zone, runs the portal all the same.
        assert one["whenUnsatisfiable"] == "ScheduleAnyway"


@pytest.mark.parametrize("name", sorted({*PARTS} - {"beat"}))
def test_a_node_can_be_drained_while_a_part_is_broken(name: str) -> None:
    """Without the policy, two pods that wait for the database would keep every node that they are on."""
    [budget] = [
        one["spec"]
        for one in EVERYTHING
        if one["kind"] == "PodDisruptionBudget" and one["metadata"]["name"] == name
    ]
    assert {*budget} <= {*V1PodDisruptionBudgetSpec.attribute_map.values()}
    assert budget["selector"] == named("Deployment", name)["spec"]["selector"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (
        1,
        "AlwaysAllow",
    )


def test_each_part_has_the_time_that_it_takes_to_end() -> None:
    grace = {name: pod_of(name)["terminationGracePeriodSeconds"] for name in PARTS}
    [_, before] = container("web")["lifecycle"]["preStop"]["exec"]["command"]
    streams = Config().graceful_timeout
    assert grace["web"] >= int(before) + streams + 5
    assert grace["worker"] >= settings.CELERY["worker_soft_shutdown_timeout"] + 15
    # What it migrates is rolled back when it is cut off, and begins anew.
    assert grace["beat"] >= 120


def test_no_stream_is_cut_off_by_the_route() -> None:
    """Open pages keep a stream, followed logs are one, and Envoy ends each answer after 15 seconds by itself."""
    rules = named("HTTPRoute", "web")["spec"]["rules"]
    assert rules
    assert [one.get("timeouts") for one in rules] == [{"request": "0s"}] * len(rules)


def test_probes_ask_paths_that_exist_without_naming_a_host() -> None:
    web = container("web")
    probes = [
        web[f"{each}Probe"]["httpGet"] for each in ("startup", "readiness", "liveness")
    ]
    assert [one["path"] for one in probes] == ["/healthz"] * 3
    for one in probes:
        assert resolve(one["path"]).func is not None
        assert one.keys() == {"path", "port"}


def test_what_only_waits_or_keeps_the_time_sees_no_credentials() -> None:
    few = {"tmp", "secrets", "ca"}
    for name, one in every_container():
        if name.endswith(("/wait-for-migrations", "/beat")):
            assert {each["name"] for each in one["volumeMounts"]} == few, name
    template = named("Deployment", "beat")["spec"]["template"]
    assert not [each for each in template["metadata"]["labels"] if "azure" in each]


def test_the_portal_shares_no_namespace_with_the_accounts_it_calls_a_cluster_by() -> (
    None
):
    """Either would take the other's labels away, and whoever may make pods there may run as the account."""
    provisioner = (ROOT / "deploy/kubernetes/provisioner.yaml").read_text()
    theirs = {
        one["metadata"]["name"]
        for one in yaml.safe_load_all(provisioner)
        if one["kind"] == "Namespace"
    }
    ours = {one["metadata"]["name"] for one in EVERYTHING if one["kind"] == "Namespace"}
    assert ours.isdisjoint(theirs)


def test_redis_runs_as_with_compose_and_only_the_portal_calls_it() -> None:
    shell = [part.replace("$$", "$") for part in SERVICES["redis"]["command"]]
    assert container("redis")["command"] == shell
    policy = named("NetworkPolicy", "the-portal-calls-redis")["spec"]
    [rule] = policy["ingress"]
    [peer] = rule["from"]
    assert peer["podSelector"]["matchExpressions"] == [
        {"key": COMPONENT, "operator": "In", "values": [*PARTS]}
    ]
    assert policy["egress"] == []


def test_nobody_else_is_let_in() -> None:
    spec = named("NetworkPolicy", "nobody-calls")["spec"]
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress"]}


def config(name: str) -> dict[str, str]:
    """What a generated ConfigMap holds."""
    [found] = [
        one["data"]
        for one in EVERYTHING
        if (one["kind"], HASH.sub("", one["metadata"]["name"])) == ("ConfigMap", name)
    ]
    return dict(found)


def test_the_portal_starts_with_the_example_and_secrets_from_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("QM_")]:
        monkeypatch.delenv(name)
    for name, value in {**config("paths"), **config("settings")}.items():
        monkeypatch.setenv(name, value)
    for name in ("secret_key", "entra_client_secret"):
        (tmp_path / f"qm_{name}").write_text("from a file")
    for name in ("database", "broker", "cache"):
        (tmp_path / f"qm_{name}_url").write_text(f"{name}://from/a/file")
    started = read(str(tmp_path))
    assert started.cache_url.get_secret_value() == "cache://from/a/file"
    assert started.public_url == "https://gpus.example.com"
    mounted = {one["mountPath"] for one in container("web")["volumeMounts"]}
    assert {*config("paths").values()} <= mounted


def test_no_secret_is_a_setting_of_the_example() -> None:
    secret = {
        f"QM_{name.upper()}"
        for name, field in Environment.model_fields.items()
        if "SecretStr" in str(field.annotation)
    }
    assert len(secret) >= 8
    assert config("settings").keys().isdisjoint(secret)


def test_the_name_that_people_type_is_the_route_s() -> None:
    [host] = named("HTTPRoute", "web")["spec"]["hostnames"]
    settings = config("settings")
    assert settings["QM_PUBLIC_URL"] == f"https://{host}"
    assert settings["QM_ALLOWED_HOSTS"] == f'["{host}"]'
