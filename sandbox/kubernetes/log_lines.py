"""What containers of the sandbox write: none runs, so their lines follow from the pod and the time. Pure.

The annotation ``test/log`` gives the lines word by word, ``test/log-every`` the seconds between two of them. What a
command echoes before it exits with an error is written when it has slept. A pod with
``test/run-for`` writes what the recorded node agent wrote, a line a second. Any other looks like a training.
"""

import math
from dataclasses import dataclass
from hashlib import sha256

from sandbox.kubernetes import commands
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import parse
from sandbox.kubernetes.store import Obj

TEXT, EVERY, RUN_FOR = "test/log", "test/log-every", "test/run-for"
INDEX = "batch.kubernetes.io/job-completion-index"
TRAINING_SECONDS, CHECKPOINT_STEPS, GPU = 3.0, 200, "nvidia.com/gpu"
AT_ONCE = 0.0001
_PRECISE = 1e-6


@dataclass(frozen=True)
class Lines:
    """The lines of one container: one when it starts and one more after each `every` seconds, or those `given`.

    The first is written `after` so many seconds.
    """

    pod: Obj
    container: str
    every: float
    given: tuple[str, ...] | None = None
    after: float = 0.0

    def count(self, seconds: float) -> int:
        """How many lines there are after so many seconds."""
        due = math.floor((seconds - self.after) / self.every + _PRECISE) + 1
        due = max(0, due)
        return due if self.given is None else min(due, len(self.given))

    def line(self, number: int) -> str:
        """One line, without its end; the first is number 0."""
        if self.given is not None:
            return self.given[number]
        if RUN_FOR in _annotations(self.pod):
            return f"step {number} loss {2 / (number + 1):.3f}"
        return _training(self.pod, number) if number else _opening(self.pod)


def lines_of(pod: Obj, container: str) -> Lines:
    """The lines of a container of a pod."""
    notes = _annotations(pod)
    usual = 1.0 if RUN_FOR in notes or TEXT in notes else TRAINING_SECONDS
    try:
        every = float(notes.get(EVERY, usual))
    except ValueError:
        every = usual
    given = given_lines(pod)
    if given and TEXT not in notes:
        return Lines(pod, container, AT_ONCE, given, commands.seconds(pod) or 0.0)
    return Lines(pod, container, max(AT_ONCE, every), given if TEXT in notes else None)


def given_lines(pod: Obj) -> tuple[str, ...]:
    """The lines that a pod says word by word; empty where it says none."""
    notes = _annotations(pod)
    return (
        tuple(str(notes[TEXT]).splitlines()) if TEXT in notes else commands.echoed(pod)
    )


def _annotations(pod: Obj) -> dict[str, str]:
    return part(part(dict(pod), "metadata"), "annotations")


def _rank(pod: Obj) -> str:
    return str(_annotations(pod).get(INDEX, "0"))


def _opening(pod: Obj) -> str:
    gpus = (
        parse(pod_amounts(part(dict(pod), "spec"), "requests").get(GPU)).nanos // 10**9
    )
    return (
        f"rank {_rank(pod)} on {part(dict(pod), 'spec').get('nodeName', '')}: {gpus} GPU(s), image "
        + str(pod["spec"]["containers"][0]["image"])
    )


def _training(pod: Obj, number: int) -> str:
    """A line of a training whose loss falls, noisily, the same for the same pod at each reading."""
    step = number * 10
    if step % CHECKPOINT_STEPS == 0:
        return f"checkpoint of step {step} saved to /checkpoints/step-{step}"
    noise = (
        int(sha256(f"{pod['metadata']['uid']} {number}".encode()).hexdigest()[:4], 16)
        / 0xFFFF
        - 0.5
    )
    loss = 1.6 + 2.4 * math.exp(-step / 900) + 0.08 * noise
    speed = 41.0 + 2.0 * noise
    return f"step {step}  loss {loss:.4f}  lr {3e-4 * 0.99995**step:.2e}  {speed:.1f}k tokens/s"
