"""Runs that tests of templates begin with: one of each template, with everything that it takes."""

from dataclasses import replace

from provisioning.desired.first_job import Kind
from workloads.templates.library import TEMPLATES, Template
from workloads.templates.parameters import Value, check
from workloads.templates.run import Claim, Repository, Run, Script, Where, run_of

A100 = Kind(
    "a100",
    "nvidia.com/gpu",
    {"accelerator": "nvidia-a100"},
    [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
)
WHERE = Where(
    namespace="qm-team-nlp",
    team="nlp",
    project="translate",
    cost_centre="cc-1001",
    environment="development",
    kind=A100,
    priority="scheduled-training",
    variables={"NCCL_SOCKET_IFNAME": "eth0"},
)
GIVEN: dict[str, Value] = {
    "image": "registry.example.com/nlp/train:1",
    "program": ("train.py", "--name=$(HOME)", "key: [yaml]"),
    "gpus": 8,
    "minutes": 90,
    "checkpoint": "/checkpoints",
    "restarts": 2,
}
SCRIPT = Script("train.py", "print('hello')\n")
SOURCE = Repository(
    "https://git.example.com/nlp/train.git", "v1.2", "registry.example.com/git:2"
)
IDS = [one.slug for one in TEMPLATES]


def run(template: Template) -> Run:
    """A run of a template, its parameters as their defaults say, with a script and a volume where it takes them."""
    names = {one.name for one in template.parameters}
    checked = check(
        template.parameters,
        {name: value for name, value in GIVEN.items() if name in names},
    )
    assert checked.problems == {}
    made = run_of(
        template.slug, checked.values, name=f"{template.slug}-0a1b2c3d", where=WHERE
    )
    made = replace(made, variables={"EPOCHS": "3"})
    if template.accepts_files:
        made = replace(
            made,
            script=SCRIPT,
            claims=(Claim("data", "/data", True), Claim("out", "/checkpoints")),
        )
    assert template.refused(made) is None
    return made
