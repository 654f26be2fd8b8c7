"""Development containers of profiles, as VS Code reads them."""

import json

from notebooks.profiles.devcontainers import devcontainer
from tests.notebooks.documents import a100, cpu


def test_it_has_the_image_gpus_volumes_and_what_the_profile_adds() -> None:
    assert json.loads(devcontainer(a100())) == {
        "name": "1 × A100",
        "image": "registry.example.com/notebook/pytorch:2.9",
        "features": {"ghcr.io/devcontainers/features/git:1": {}},
        "runArgs": ["--gpus", "1"],
        "hostRequirements": {"cpus": 8, "memory": "64gb", "gpu": True},
        "containerEnv": {"HF_HOME": "/data/hf"},
        "mounts": ["source=datasets,target=/data,type=volume,readonly"],
        "postCreateCommand": "pip install -r requirements.txt",
        "customizations": {"vscode": {"extensions": ["ms-toolsai.jupyter"]}},
    }


def test_one_without_gpus_asks_for_none_and_for_a_whole_cpu() -> None:
    assert json.loads(devcontainer(cpu())) == {
        "name": "Small, without a GPU",
        "image": "registry.example.com/notebook/scipy:2026",
        "hostRequirements": {"cpus": 1, "memory": "4gb"},
    }


def test_it_has_what_the_options_begin_with() -> None:
    sizes = {
        "size": {
            "title": "Size",
            "choices": {
                "two": {"title": "Two", "gpus": 2, "image": "example.com/two:2"}
            },
        }
    }
    found = json.loads(devcontainer(a100(options=sizes)))
    assert (found["runArgs"], found["image"]) == (["--gpus", "2"], "example.com/two:2")
