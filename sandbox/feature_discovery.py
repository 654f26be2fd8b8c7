"""The labels that GPU Feature Discovery gives nodes with GPUs, as its release in k8s-device-plugin writes them."""

from collections.abc import Mapping

from sandbox.world import ClusterSpec, NodeGroup

# By how the name of a size of machine ends: product, MiB of one GPU, family, compute capability.
DEVICES: Mapping[str, tuple[str, int, str, str]] = {
    "ads_A100_v4": ("NVIDIA-A100-80GB-PCIe", 81920, "ampere", "8.0"),
    "amsr_A100_v4": ("NVIDIA-A100-SXM4-80GB", 81920, "ampere", "8.0"),
    "asr_v4": ("NVIDIA-A100-SXM4-40GB", 40960, "ampere", "8.0"),
    "isr_H100_v5": ("NVIDIA-H100-80GB-HBM3", 81559, "hopper", "9.0"),
    "ads_H100_v5": ("NVIDIA-H100-NVL", 95830, "hopper", "9.0"),
    "adis_H100_v5": ("NVIDIA-H100-NVL", 95830, "hopper", "9.0"),
    "as_T4_v3": ("Tesla-T4", 15360, "turing", "7.5"),
    "ads_A10_v5": ("NVIDIA-A10", 23028, "ampere", "8.6"),
}


def gpu_labels(spec: ClusterSpec, group: NodeGroup) -> dict[str, str]:
    """What its DaemonSet writes to each node of a group; nothing on nodes without GPUs, or without a driver."""
    if not group.gpus or not spec.driver:
        return {}
    return {
        **_versions("driver", spec.driver, "rev"),
        **_versions("runtime", spec.cuda),
        **_device(group),
        "nvidia.com/gpu.count": str(group.gpus),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mps.capable": "false",
    }


def _versions(what: str, version: str, *old_third: str) -> dict[str, str]:
    """A version whole and in parts, with the names that are deprecated and written still."""
    parts = [*version.split("."), "", ""]
    new = ("major", "minor", *("revision" for _ in old_third))
    old = ("major", "minor", *old_third)
    return {
        f"nvidia.com/cuda.{what}-version.full": version,
        **{
            f"nvidia.com/cuda.{what}-version.{name}": part
            for name, part in zip(new, parts, strict=False)
        },
        **{
            f"nvidia.com/cuda.{what}.{name}": part
            for name, part in zip(old, parts, strict=False)
        },
    }


def _device(group: NodeGroup) -> dict[str, str]:
    found = next(
        (one for end, one in DEVICES.items() if group.instance_type.endswith(end)),
        None,
    )
    if found is None:
        return {}
    product, memory, family, capability = found
    major, _, minor = capability.partition(".")
    return {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.memory": str(memory),
        "nvidia.com/gpu.family": family,
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
    }
