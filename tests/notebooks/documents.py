"""Profiles that tests begin with."""

from typing import Any

from notebooks.profiles.document import Document, document_from, read, to_json
from notebooks.profiles.spawning import Place
from provisioning.desired.first_job import Kind

A100 = r"""
slug: a100-1
title: 1 × A100
help: PyTorch with a GPU of your own.
order: 10
default: true
image: registry.example.com/notebook/pytorch:2.9
cpus: 8
memory: 64
gpus: 1
volumes:
- {name: datasets, path: /data, read_only: true}
variables: {HF_HOME: /data/hf}
overrides: {start_timeout: 3600, privileged: false, extra_labels: {course: spring}}
flavor: a100
teams: [vision, nlp]
environments: [dev, test]
options:
  image:
    title: Image
    choices:
      pytorch: {title: PyTorch 2.9, default: true, image: "registry.example.com/notebook/pytorch:2.9"}
      jax: {title: JAX 0.9, image: "registry.example.com/notebook/jax:0.9"}
    free: {title: Another image, image: "{value}", pattern: '^registry\.example\.com/notebook/[a-z0-9:.-]+$'}
  size:
    title: Size
    choices:
      one: {title: 1 GPU, default: true, gpus: 1, cpus: 8, memory: 64}
      two: {title: 2 GPUs, gpus: 2, cpus: 16.5, memory: 128}
devcontainer:
  features: {"ghcr.io/devcontainers/features/git:1": {}}
  post_create: pip install -r requirements.txt
  extensions: [ms-toolsai.jupyter]
"""
CPU = """
slug: cpu
title: Small, without a GPU
image: registry.example.com/notebook/scipy:2026
cpus: 0.5
memory: 4
"""
TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}


def a100(**changes: Any) -> Document:
    """The profile of the text above, changed."""
    return changed(A100, **changes)


def cpu(**changes: Any) -> Document:
    """A profile without GPUs, changed."""
    return changed(CPU, **changes)


def changed(text: str, **changes: Any) -> Document:
    """A profile with other values of some keys."""
    return document_from(to_json(read(text)) | changes)


def place(*, gpus: int = 4, **changes: Any) -> Place:
    """The namespace of a team that has GPUs of the flavor a100."""
    usual: dict[str, Any] = {
        "namespace": "qm-vision-main-1a2b3c",
        "cluster": "training-eastus",
        "cluster_title": "Training, East US",
        "team": "vision",
        "project": "main",
        "cost_centre": "CC-1",
        "environment": "dev",
        "kinds": {
            "a100": Kind(
                "a100", "nvidia.com/gpu", {"accelerator": "nvidia-a100"}, [TAINT]
            )
        },
        "gpus": {"a100": gpus},
    }
    return Place(**usual | changes)
