"""A live test uses the context it was told and takes away exactly what it made."""

from pathlib import Path

import pytest
import yaml

from connectors.kubernetes import Cluster
from scripts.live_cleaning import clean
from scripts.live_test import described, narrowed

COHORT, FLAVOR = (
    ("kueue.x-k8s.io/v1beta2", kind) for kind in ("Cohort", "ResourceFlavor")
)
CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "contexts": [
        {"name": name, "context": {"cluster": name, "user": "me"}} for name in "ab"
    ],
    "clusters": [
        {"name": name, "cluster": {"server": "x", "certificate-authority": "ca.pem"}}
        for name in "ab"
    ],
    "users": [{"name": "me", "user": {"client-certificate": "/etc/me.pem"}}],
}


def given(folder: Path) -> Path:
    """A kubeconfig with two contexts, in a folder of its own."""
    path = folder / "given" / "config.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(CONFIG))
    return path


@pytest.mark.parametrize(("context", "current"), [("", "a"), ("b", "b")])
def test_the_context_that_is_asked_for_is_used_and_files_beside_it_are_found(
    tmp_path: Path, context: str, current: str
) -> None:
    path = narrowed(given(tmp_path), context, tmp_path)
    found = yaml.safe_load(path.read_text())
    assert found["current-context"] == current
    assert found["clusters"][0]["cluster"]["certificate-authority"] == str(
        tmp_path / "given" / "ca.pem"
    )
    assert found["users"][0]["user"]["client-certificate"] == "/etc/me.pem"
    assert path.stat().st_mode & 0o077 == 0


def test_a_context_that_is_not_there_is_refused_with_those_that_are(
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match=r"no context c in .*; there are a, b\."):
        narrowed(given(tmp_path), "c", tmp_path)


def test_the_cluster_says_its_versions(admin: Cluster) -> None:
    assert described(admin).startswith("Kubernetes v1.")


def test_what_has_the_prefix_or_is_named_goes_and_nothing_else(
    admin: Cluster, prefix: str
) -> None:
    def make(ref: tuple[str, str], name: str) -> None:
        admin.apply({"apiVersion": ref[0], "kind": ref[1], "metadata": {"name": name}})

    for ref, name in [
        (("v1", "Namespace"), f"{prefix}-x"),
        (COHORT, f"{prefix}-x"),
        (COHORT, f"{prefix}y"),
        (FLAVOR, f"{prefix}z"),
    ]:
        make(ref, name)
    left = clean(admin, prefix, also=[("ResourceFlavor", f"{prefix}z")], seconds=30)
    assert (left.removed, left.stuck) == (3, [])
    assert admin.get(COHORT, f"{prefix}y") is not None
    assert clean(admin, f"{prefix}y", also=[("Cohort", f"{prefix}y")]).removed == 1


def test_what_does_not_go_is_named(admin: Cluster, prefix: str) -> None:
    held = {"name": f"{prefix}-held", "finalizers": ["quartermaster.io/hold"]}
    admin.create({"apiVersion": COHORT[0], "kind": "Cohort", "metadata": held})
    left = clean(admin, prefix, seconds=0.1)
    assert (left.removed, left.stuck) == (0, [f"Cohort {prefix}-held"])
    admin.merge(COHORT, f"{prefix}-held", None, {"metadata": {"finalizers": None}})
