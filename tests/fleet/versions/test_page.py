"""The page of versions: what runs where, what differs, and what is not known."""

from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from accounts.roles import Role
from fleet.models import Cluster, Flavor
from fleet.versions.page import page_of
from fleet.versions.reading import versions_of
from tests import factories
from tests.calling import Caller

pytestmark = pytest.mark.django_db
OLD, NEW = ("550.90.07", "12.4"), ("570.86.15", "12.8")
Read = Callable[[], str]


def ran(*drivers: tuple[str, str], kubelet: str = "v1.36.2") -> dict[str, Any]:
    """What nodes ran: a driver and its CUDA for each of them."""
    found = versions_of(
        [
            {
                "metadata": {
                    "labels": {
                        "nvidia.com/cuda.driver-version.full": driver,
                        "nvidia.com/cuda.runtime-version.full": cuda,
                        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                    }
                },
                "status": {
                    "nodeInfo": {
                        "kubeletVersion": kubelet,
                        "containerRuntimeVersion": "containerd://2.1.0",
                        "osImage": "Ubuntu 24.04 LTS",
                        "kernelVersion": "6.8.0-1034-azure",
                    }
                },
            }
            for driver, cuda in drivers
        ]
    )
    now = timezone.now()
    return {"versions": found, "versions_at": now, "gpus_seen_at": now}


@pytest.fixture
def page(client: Client) -> Read:
    """What somebody without a role or a team reads on it, in one line."""
    client.force_login(factories.person("Ada"))

    def read() -> str:
        answer = client.get("/clusters/versions")
        assert answer.status_code == 200
        main = answer.content.decode().partition("<main")[2].partition("</main>")[0]
        return " ".join(unescape(strip_tags(f"<main{main}")).split())

    return read


def cluster(name: str, title: str, **fields: Any) -> Cluster:
    return factories.cluster(
        name, **({"title": title, "kueue_version": "v0.19.2"} | fields)
    )


def test_it_tells_what_differs_between_clusters(page: Read) -> None:
    training = cluster("training", "Training")
    dev = cluster("dev", "Development", version="v1.37.0")
    factories.flavor(training, "a100", **ran(OLD))
    factories.flavor(dev, "a100", **ran(NEW, kubelet="v1.37.0"))

    said = page()

    assert (
        "Kubernetes v1.37.0 on Development v1.36.2 on Training "
        "Driver 570.86.15 on Development 550.90.07 on Training "
        "CUDA up to 12.8 on Development 12.4 on Training"
    ) in said
    assert "550.90.07 older than 570.86.15" in said
    assert "v1.36.2 older than v1.37.0" in said
    assert "NVIDIA-A100-SXM4-80GB" in said
    assert "Ubuntu 24.04 LTS kernel 6.8.0-1034-azure" in said
    assert "containerd 2.1.0" in said
    assert "labels of GPU Feature Discovery" not in said


def test_kinds_are_named_where_a_cluster_has_several_versions(page: Read) -> None:
    training = cluster("training", "Training")
    factories.flavor(training, "a100", **ran(NEW))
    factories.flavor(training, "h100", product="H100", **ran(NEW))
    factories.flavor(training, "t4", product="T4", memory_gb=16, **ran(OLD))
    factories.flavor(training, "l4", product="L4", memory_gb=24)
    factories.flavor(cluster("dev", "Development"), "a100", **ran(NEW))
    assert (
        "Driver 570.86.15 on Development and Training (A100 80 GB and H100 80 GB) "
        "550.90.07 on Training (T4 16 GB)"
    ) in page()


def test_the_same_kind_on_several_clusters_stands_together(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    for name in ("zebra", "alpha"):
        on = cluster(name, name.title())
        factories.flavor(on, "t4", product="T4", memory_gb=16)
        factories.flavor(on, "a100")
    cluster("empty", "Bare")

    rows = client.get("/clusters/versions").context["rows"]

    assert [[cell["text"] for cell in row["cells"][:2]] for row in rows] == [
        ["A100 80 GB", "Alpha"],
        ["A100 80 GB", "Zebra"],
        ["T4 16 GB", "Alpha"],
        ["T4 16 GB", "Zebra"],
        ["No kind of GPU", "Bare"],
    ]


def test_where_all_is_alike_it_says_so(page: Read) -> None:
    for name in ("training", "dev"):
        factories.flavor(cluster(name, name), "a100", **ran(NEW))
    said = page()
    assert "Nothing: every version that is known is the same everywhere." in said
    assert "older" not in said


def test_nodes_of_one_kind_that_differ_are_told(page: Read) -> None:
    seen = ran(*[NEW] * 6, *[OLD] * 2, kubelet="v1.35.4")
    factories.flavor(cluster("training", "Training"), "a100", **seen)
    said = page()
    assert "570.86.15 2 of 8 nodes: 550.90.07" in said
    assert (
        "Driver 570.86.15 on Training (A100 80 GB: 6 of 8 nodes) "
        "550.90.07 on Training (A100 80 GB: 2 of 8 nodes)"
    ) in said
    assert "12.8 2 of 8 nodes: 12.4" in said
    assert "v1.36.2 nodes v1.35.4" in said


def test_a_cluster_without_gpu_feature_discovery_is_named(page: Read) -> None:
    factories.flavor(cluster("training", "Training"), "a100", **ran(NEW))
    bare = cluster("dev", "Development")
    factories.flavor(bare, "a100", **ran(("", "")))
    factories.flavor(bare, "t4")
    factories.flavor(cluster("new", "New one"), "a100")
    said = page()
    assert "No node of Development has the labels of GPU Feature Discovery" in said
    assert "not told" in said


@pytest.mark.parametrize(
    ("of_cluster", "of_flavor", "words"),
    [
        pytest.param({}, {}, "", id="as it is"),
        pytest.param(
            {"reachable": False, "message": "timed out"},
            {},
            "the cluster does not answer, last contact",
            id="away",
        ),
        pytest.param(
            {"capacity_doubt": "It listed 1 of its 9 nodes.", "doubted_looks": 1},
            {},
            "the cluster's list of nodes is not believed now",
            id="doubted",
        ),
        pytest.param(
            {"delivery": "git", "git_url": "https://git.example.com/x"},
            {},
            "the portal does not see its nodes",
            id="git",
        ),
        pytest.param(
            {},
            {"versions_at": timedelta(hours=3)},
            "3 h ago no node stands now",
            id="scaled to none",
        ),
        pytest.param(
            {},
            {"versions_at": timedelta(hours=3), "gpus_seen_at": timedelta(hours=3)},
            "3 h ago no worker has looked since",
            id="no worker",
        ),
        pytest.param(
            {},
            {"versions": {}, "versions_at": None},
            "not yet no node of this kind has stood yet",
            id="none yet",
        ),
        pytest.param(
            {},
            {"versions": {}, "versions_at": None, "gpus_seen_at": None},
            "not yet a worker looks within a minute",
            id="never looked",
        ),
    ],
)
def test_what_is_not_of_now_says_why(
    page: Read, of_cluster: dict[str, Any], of_flavor: dict[str, Any], words: str
) -> None:
    now = timezone.now()
    fields = {
        name: now - one if isinstance(one, timedelta) else one
        for name, one in {"gpus_seen_at": now, **of_flavor}.items()
    }
    seen = {**ran(NEW), "versions_at": now, **fields}
    factories.flavor(cluster("training", "Training", **of_cluster), "a100", **seen)

    [row] = page_of(Cluster.objects.all(), now=now)["rows"]
    last: Any = row["cells"][-1]

    assert words in page()
    assert bool(last["sub"]) == bool(words)


def test_what_is_written_off_is_not_compared(page: Read) -> None:
    gone = cluster("gone", "Gone", enabled=False, written_off_at=timezone.now())
    factories.flavor(gone, "a100", **ran(OLD))
    assert "No clusters yet" in page()


def test_it_is_reached_from_the_clusters_and_from_each(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    on = cluster("training", "Training")
    factories.flavor(on, "a100", **ran(NEW))
    link = f'href="{reverse("versions")}"'
    for path in ("/clusters/", "/clusters/training/"):
        shown = client.get(path).content.decode()
        assert link in shown
        assert "driver 570.86.15, CUDA up to 12.8" in shown
    assert link in client.get("/palette", {"q": "driver"}).content.decode()


def test_names_cannot_reach_out_of_their_place(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    evil = "<img src=x onerror=alert(1)>"
    for name, driver in (("a", evil), ("b", "570.1")):
        on = cluster(name, f"{evil}{name}", version=evil)
        factories.flavor(on, "a100", product=evil[:20], **ran((driver, evil)))
    shown = client.get("/clusters/versions").content.decode()
    assert "<img src=x" not in shown
    assert "&lt;img src=x" in shown


def test_many_clusters_are_asked_in_as_few_queries_as_one(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    factories.flavor(cluster("c0", "C0"), "a100", **ran(NEW))
    client.get("/clusters/versions")
    with CaptureQueriesContext(connection) as one:
        client.get("/clusters/versions")
    for number in range(1, 40):
        factories.flavor(cluster(f"c{number}", f"C{number}"), "a100", **ran(OLD, NEW))
    with CaptureQueriesContext(connection) as many:
        shown = client.get("/clusters/versions").content.decode()
    assert len(many) == len(one)
    assert "33 more" in shown


def test_the_api_tells_the_same_of_each_kind() -> None:
    on = cluster("training", "Training")
    factories.flavor(on, "a100", **ran(NEW, NEW, OLD))
    factories.flavor(on, "t4")

    found = Caller(factories.person("Ada")).get("clusters/training/").json()["flavors"]

    told = {one["name"]: one for one in found}
    assert told["a100"]["versions"] == Flavor.objects.get(name="a100").versions
    assert told["a100"]["versions"]["driver"] == [
        {"version": "570.86.15", "nodes": 2},
        {"version": "550.90.07", "nodes": 1},
    ]
    assert told["a100"]["versions_at"] is not None
    assert (told["t4"]["versions"], told["t4"]["versions_at"]) == (None, None)


def test_nobody_writes_what_nodes_run() -> None:
    made = factories.flavor(cluster("training", "Training"), "a100", **ran(NEW))
    priya = Caller(factories.person("Priya", Role.PLATFORM_LEAD))
    for field in ("versions", "versions_at"):
        answer = priya.patch(f"flavors/{made.pk}/", {field: None})
        assert answer.json()["errors"][0]["code"] == "unknown_field"
