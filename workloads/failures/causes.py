"""The causes for which programs fail, what each is called, and what to do about it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """What a cause is called by machines; it stays as it is."""

    GPU_MEMORY = "gpu_memory"
    MEMORY = "memory"
    SHARED_MEMORY = "shared_memory"
    DISK = "disk"
    DRIVER = "driver"
    GPU_KIND = "gpu_kind"
    NO_GPU = "no_gpu"
    BROKEN_GPU = "broken_gpu"
    MODULE = "module"
    FILE = "file"
    COMMAND = "command"
    PERMISSION = "permission"
    REFUSED = "refused_by_service"
    NETWORK = "network"
    WORKERS = "workers"
    NODE = "node"
    PROGRAM = "program"

    @property
    def label(self) -> str:
        """What people call it, in a few words: "out of GPU memory"."""
        return ADVICE[self].label

    @property
    def advice(self) -> str:
        """What to do about it, in a sentence or two."""
        return ADVICE[self].do


@dataclass(frozen=True, slots=True)
class Advice:
    """What people call a cause, and what to do about it."""

    label: str
    do: str


ADVICE: Mapping[Code, Advice] = {
    Code.GPU_MEMORY: Advice(
        "out of GPU memory",
        "Make its batches smaller, or choose a kind of GPU with more memory, and run it again.",
    ),
    Code.MEMORY: Advice(
        "out of memory",
        "Give it more memory on each node, or have it load less at once, and run it again.",
    ),
    Code.SHARED_MEMORY: Advice(
        "out of shared memory",
        "Use fewer data loaders, or give it more memory on each node, half of which may be shared, and run it again.",
    ),
    Code.DISK: Advice(
        "no space left",
        "Have it write to a volume with room, or make room there, and run it again.",
    ),
    Code.DRIVER: Advice(
        "driver too old",
        "Choose an image for an older CUDA, or nodes with a newer driver (the page Versions compares them), and run it "
        "again.",
    ),
    Code.GPU_KIND: Advice(
        "image not for this GPU",
        "Choose an image whose libraries support this kind of GPU, or another kind of GPU, and run it again.",
    ),
    Code.NO_GPU: Advice(
        "no GPU found",
        "Ask for at least one GPU on each node, choose an image with CUDA, and run it again.",
    ),
    Code.BROKEN_GPU: Advice(
        "broken GPU",
        "Tell a platform lead, who takes its node out, and run it again from its last checkpoint.",
    ),
    Code.MODULE: Advice(
        "not in its image",
        "Choose an image that has it, or have the program install it first, and run it again.",
    ),
    Code.FILE: Advice(
        "file not there",
        "Correct the path, or mount the volume that has it, and run it again.",
    ),
    Code.COMMAND: Advice(
        "command not there",
        "Correct the command, or choose an image that has it, and run it again.",
    ),
    Code.PERMISSION: Advice(
        "may not open a file",
        "Have it write to a volume or to /tmp, as it is no administrator in its container, and run it again.",
    ),
    Code.REFUSED: Advice(
        "refused by a service",
        "Look whether what it asked for is called so, give it a valid token from a Secret of its namespace, and run it "
        "again.",
    ),
    Code.NETWORK: Advice(
        "host not reached",
        "Look whether the address is right; a platform lead opens the way out to a host that pods may not reach.",
    ),
    Code.WORKERS: Advice(
        "workers lost each other",
        "Look at the log of the worker that ended first, mend the cause there, and run it again.",
    ),
    Code.NODE: Advice(
        "ended by its node",
        "Run it again from its last checkpoint.",
    ),
    Code.PROGRAM: Advice(
        "error in its program",
        "Look at its logs, mend the cause, and run it again.",
    ),
}


CHOICES = [(code.value, code.label) for code in Code]
# Of which a kept log may tell more than the pods did; empty is one that is not known.
VAGUE = frozenset({"", Code.PROGRAM, Code.WORKERS, Code.NETWORK})


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a program failed, in a sentence; `follows` says that it may only follow from what ended another pod."""

    code: Code
    what: str
    follows: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether it says what to change: it follows from nothing else, and is no error of just any kind."""
        return self.code is not Code.PROGRAM and not self.follows

    def began_in(self, where: str) -> str:
        """The sentence about it, with where it began if it began there; empty for work of one pod."""
        return (
            f"{self.what} It began in {where}."
            if where and not self.follows
            else self.what
        )
