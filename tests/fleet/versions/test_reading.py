"""What nodes tell of their versions, whatever stands in their labels."""

from typing import Any

import pytest

from fleet.versions.reading import (
    LONGEST,
    LONGEST_LABELLED,
    MAX_VERSIONS,
    Component,
    versions_of,
)

FULL = {
    "nvidia.com/cuda.driver-version.full": "570.86.15",
    "nvidia.com/cuda.driver-version.major": "570",
    "nvidia.com/cuda.driver-version.minor": "86",
    "nvidia.com/cuda.driver-version.revision": "15",
    "nvidia.com/cuda.driver.major": "1",
    "nvidia.com/cuda.runtime-version.full": "12.8",
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
}
DRIVER, CUDA = "nvidia.com/cuda.driver-version.", "nvidia.com/cuda.runtime-version."
OLD_DRIVER, OLD_CUDA = "nvidia.com/cuda.driver.", "nvidia.com/cuda.runtime."


def node(labels: Any = None, info: Any = None) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "status": {"nodeInfo": info}}


def only(component: Component, *nodes: dict[str, Any]) -> list[tuple[str, int]]:
    found: Any = versions_of(nodes)[component.value]
    return [(one["version"], one["nodes"]) for one in found]


def test_a_node_tells_its_versions() -> None:
    info = {
        "kubeletVersion": "v1.36.2",
        "containerRuntimeVersion": "containerd://2.1.0",
        "osImage": "Ubuntu 24.04 LTS",
        "kernelVersion": "6.8.0-1034-azure",
    }

    assert versions_of([node(FULL, info)]) == {
        "nodes": 1,
        "kubelet": [{"version": "v1.36.2", "nodes": 1}],
        "driver": [{"version": "570.86.15", "nodes": 1}],
        "cuda": [{"version": "12.8", "nodes": 1}],
        "runtime": [{"version": "containerd 2.1.0", "nodes": 1}],
        "os": [{"version": "Ubuntu 24.04 LTS", "nodes": 1}],
        "kernel": [{"version": "6.8.0-1034-azure", "nodes": 1}],
        "product": [{"version": "NVIDIA-A100-SXM4-80GB", "nodes": 1}],
    }


@pytest.mark.parametrize(
    ("labels", "driver", "cuda"),
    [
        pytest.param(
            {
                f"{DRIVER}major": "550",
                f"{DRIVER}minor": "90",
                f"{DRIVER}revision": "07",
                f"{CUDA}major": "12",
                f"{CUDA}minor": "4",
            },
            "550.90.07",
            "12.4",
            id="parts",
        ),
        pytest.param(
            {
                f"{OLD_DRIVER}major": "525",
                f"{OLD_DRIVER}minor": "105",
                f"{OLD_DRIVER}rev": "17",
                f"{OLD_CUDA}major": "12",
                f"{OLD_CUDA}minor": "0",
            },
            "525.105.17",
            "12.0",
            id="parts of an old release",
        ),
        pytest.param(
            {
                f"{DRIVER}full": "",
                f"{OLD_DRIVER}major": "470",
                f"{OLD_DRIVER}minor": "82",
                f"{OLD_DRIVER}rev": "",
                f"{CUDA}major": "11",
            },
            "470.82",
            "11",
            id="no revision, no minor",
        ),
        pytest.param(
            {f"{DRIVER}major": "570", f"{DRIVER}revision": "15", f"{CUDA}minor": "8"},
            "570",
            "",
            id="nothing behind what is missing",
        ),
        pytest.param({f"{DRIVER}rev": "15"}, "", "", id="a part that does not belong"),
    ],
)
def test_a_version_is_put_together_where_it_is_not_told_whole(
    labels: dict[str, str], driver: str, cuda: str
) -> None:
    assert only(Component.DRIVER, node(labels)) == [(driver, 1)]
    assert only(Component.CUDA, node(labels)) == [(cuda, 1)]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("  570.86.15 \n", "570.86.15"),
        ("570\u202e51.68", "570 51.68"),
        ("a\x00b\ud800c\u2028d", "a b c d"),
        ("9" * 500, "9" * LONGEST),
        ("<script>", "<script>"),
        (570, ""),
        (None, ""),
        (["570"], ""),
        ({"570": 1}, ""),
        ("\u200b", ""),
    ],
)
def test_what_cannot_be_printed_is_not_kept(said: Any, read: str) -> None:
    labels = {f"{DRIVER}full": said, "nvidia.com/gpu.product": said}
    info = {"osImage": said, "kernelVersion": said, "kubeletVersion": said}

    found = versions_of([node(labels, info)])

    for told in ("product", "os", "kernel", "kubelet"):
        assert found[told] == [{"version": read, "nodes": 1}]
    assert found["driver"] == [{"version": read[:LONGEST_LABELLED], "nodes": 1}]


def test_every_component_is_among_the_versions() -> None:
    assert {"nodes", *(one.value for one in Component)} == versions_of([]).keys()


def test_only_what_stands_before_the_version_of_a_runtime_is_taken_for_its_name() -> (
    None
):
    odd = node(info={"containerRuntimeVersion": "docker://x://1.0"})
    assert only(Component.RUNTIME, odd) == [("docker x://1.0", 1)]


def test_parts_that_are_too_long_are_cut_together() -> None:
    labels = {f"{CUDA}{part}": "7" * 63 for part in ("major", "minor")}
    assert only(Component.CUDA, node(labels)) == [("7" * 20, 1)]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"metadata": None, "status": None},
        {"metadata": "x", "status": []},
        node("x", "y"),
        node([], []),
    ],
)
def test_a_node_without_what_every_node_has_tells_nothing(odd: dict[str, Any]) -> None:
    assert only(Component.DRIVER, odd) == [("", 1)]
    assert only(Component.KUBELET, odd) == [("", 1)]


def test_the_version_of_most_nodes_comes_first() -> None:
    new, old, none = (
        node({f"{DRIVER}full": "570.86.15"}),
        node({f"{DRIVER}full": "550.90.07"}),
        node(),
    )

    found = only(Component.DRIVER, old, new, none, new, old, new)

    assert found == [("570.86.15", 3), ("550.90.07", 2), ("", 1)]
    assert only(Component.DRIVER, new, old) == [("550.90.07", 1), ("570.86.15", 1)]
    assert only(Component.DRIVER) == []


def test_a_thousand_nodes_that_all_differ_are_kept_in_a_few_lines() -> None:
    nodes = [node({f"{DRIVER}full": f"570.{number}"}) for number in range(1_000)]

    found = versions_of([*nodes, nodes[7]])

    assert found["nodes"] == 1_001
    assert len(found["driver"]) == MAX_VERSIONS == 8
    assert found["driver"][0] == {"version": "570.7", "nodes": 2}
