"""Nodes with GPUs have the labels of GPU Feature Discovery, as real ones do."""

from dataclasses import replace

from sandbox import world
from sandbox.clusters import _nodes
from sandbox.feature_discovery import DEVICES, gpu_labels
from sandbox.world import ClusterSpec, NodeGroup

GROUP = NodeGroup(
    "a100", 1, 8, instance_type="Standard_ND96amsr_A100_v4", accelerator="a100"
)
SPEC = ClusterSpec("training", "eastus", (GROUP, NodeGroup("system", 1)))


def test_they_are_those_that_its_release_writes() -> None:
    # As recorded of a node with one T4 and driver 550.144.03, but for values.
    assert gpu_labels(SPEC, GROUP) == {
        "nvidia.com/cuda.driver-version.full": "570.86.15",
        "nvidia.com/cuda.driver-version.major": "570",
        "nvidia.com/cuda.driver-version.minor": "86",
        "nvidia.com/cuda.driver-version.revision": "15",
        "nvidia.com/cuda.driver.major": "570",
        "nvidia.com/cuda.driver.minor": "86",
        "nvidia.com/cuda.driver.rev": "15",
        "nvidia.com/cuda.runtime-version.full": "12.8",
        "nvidia.com/cuda.runtime-version.major": "12",
        "nvidia.com/cuda.runtime-version.minor": "8",
        "nvidia.com/cuda.runtime.major": "12",
        "nvidia.com/cuda.runtime.minor": "8",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.memory": "81920",
        "nvidia.com/gpu.family": "ampere",
        "nvidia.com/gpu.compute.major": "8",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mps.capable": "false",
    }


def test_a_driver_of_two_numbers_has_an_empty_revision() -> None:
    found = gpu_labels(replace(SPEC, driver="470.82"), GROUP)
    assert found["nvidia.com/cuda.driver-version.revision"] == ""
    assert found["nvidia.com/cuda.driver.rev"] == ""


def test_only_nodes_with_gpus_and_a_driver_have_them() -> None:
    labels = {node.name: node.labels for node in _nodes(SPEC)}
    told = {name for name, one in labels.items() if "nvidia.com/gpu.product" in one}
    assert told == {"aks-a100-eastus-vmss000000"}
    assert gpu_labels(replace(SPEC, driver=""), GROUP) == {}


def test_every_size_with_gpus_in_the_sample_world_is_a_known_device() -> None:
    sizes = {
        group.instance_type
        for cluster in world.sample().clusters
        for group in cluster.node_groups
        if group.gpus
    }
    assert sizes
    assert not [one for one in sizes if not one.endswith(tuple(DEVICES))]
