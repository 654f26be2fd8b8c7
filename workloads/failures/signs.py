"""What programs write when they fail, and which cause it tells: the words of PyTorch, CUDA, NCCL, Python and shells.

Of a line only the kind of error is told, with names that the pattern takes out of it: what else a program writes may be
secret. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workloads.failures.causes import Cause, Code

# A longer line holds data, and no error.
LONGEST_LINE = 4_000
NAME = r"[\w.+-]{1,80}"
PATH = r"[\w./+@=-]{1,150}"
HOST = r"[A-Za-z0-9.-]{1,100}"


@dataclass(frozen=True, slots=True)
class Sign:
    """A line that tells a cause; the sentence is filled in with the groups of the pattern, an empty one by "it"."""

    code: Code
    pattern: re.Pattern[str]
    what: str
    follows: bool = False

    def cause(self, found: re.Match[str]) -> Cause:
        """The cause that a line tells which the pattern has found."""
        groups = [one for one in found.groups() if one]
        return Cause(self.code, self.what.format(*groups), self.follows)


def _sign(code: Code, pattern: str, what: str, *, follows: bool = False) -> Sign:
    return Sign(code, re.compile(pattern, re.ASCII), what, follows)


# Of each line the first that matches counts.
SIGNS: Sequence[Sign] = (
    _sign(
        Code.GPU_MEMORY,
        r"out of memory.{0,80}Tried to allocate (\d{1,6}(?:\.\d{1,3})? [KMGT]iB)",
        "A GPU had no memory left for the {} more that its program needed.",
    ),
    _sign(
        Code.GPU_MEMORY,
        r"(?:CUDA|HIP)(?: error:)? out of memory|CUDA_ERROR_OUT_OF_MEMORY|torch(?:\.cuda)?\.OutOfMemoryError"
        r"|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory",
        "A GPU had no memory left for its program.",
    ),
    _sign(
        Code.DRIVER,
        # 12020 is CUDA 12.2.
        r"driver on your system is too old \(found version (\d\d)0(\d)0\)",
        "Its image needs a newer NVIDIA driver: that of its node goes up to CUDA {}.{}.",
    ),
    _sign(
        Code.DRIVER,
        r"unsatisfied condition: cuda ?>= ?(\d{1,2}\.\d{1,2})",
        "Its image needs CUDA {} or newer, for which the driver of its node is too old.",
    ),
    _sign(
        Code.DRIVER,
        r"CUDA driver version is insufficient|driver on your system is too old"
        r"|forward compatibility was attempted on non supported HW",
        "Its image needs a newer NVIDIA driver than its node has.",
    ),
    _sign(
        Code.GPU_KIND,
        r"no kernel image is available for execution",
        "The libraries of its image do not support the kind of GPU that it got.",
    ),
    _sign(
        Code.NO_GPU,
        r"No CUDA GPUs are available|no CUDA-capable device is detected|Found no NVIDIA driver on your system"
        r"|Torch not compiled with CUDA enabled",
        "Its program found no GPU that it can use.",
    ),
    _sign(
        Code.BROKEN_GPU,
        r"uncorrectable (?:NVLink|ECC) error|GPU has fallen off the bus|CUDA error: hardware stack error",
        "A GPU that it had is broken.",
    ),
    _sign(
        Code.SHARED_MEMORY,
        r"insufficient shared memory|killed by signal: Bus error|unable to (?:open|allocate|mmap) .{0,80}shared memory",
        "Its data loaders had no shared memory left.",
    ),
    _sign(
        Code.MEMORY,
        r"killed by signal: Killed|(?:^|: )MemoryError\b|ArrayMemoryError\b|std::bad_alloc",
        "It had no memory left.",
    ),
    _sign(
        Code.DISK,
        r"No space left on device|Disk quota exceeded",
        "It had no space left to write to.",
    ),
    _sign(
        Code.MODULE,
        rf"No module named '?({NAME})",
        "Its image lacks the Python module {}.",
    ),
    _sign(
        Code.MODULE,
        rf"error while loading shared libraries: ({NAME})",
        "Its image lacks the library {}.",
    ),
    _sign(
        Code.FILE,
        rf"can't open file '({PATH})'|No such file or directory: '({PATH})'",
        "There is no file {}.",
    ),
    _sign(
        Code.COMMAND,
        rf"exec: \"?({PATH})\"?: (?:executable file not found|stat .*no such file|permission denied)"
        rf"|: ({PATH}): (?:command )?not found$",
        "Its image has no command {} that it may run.",
    ),
    _sign(
        Code.PERMISSION,
        rf"Permission denied: '({PATH})'",
        "It may not open {}.",
    ),
    _sign(
        Code.REFUSED,
        rf"40[13] Client Error.{{0,200}} url: https?://({HOST})",
        "{} refused it for want of a valid token.",
    ),
    _sign(
        Code.REFUSED,
        r"GatedRepoError|Cannot access gated repo|NoCredentialsError|api_key not configured|401 Unauthorized",
        "A service refused it for want of a valid token.",
    ),
    _sign(
        Code.NETWORK,
        rf"host='({HOST})', port=\d+\): Max retries exceeded|[Cc]ould not resolve host: ({HOST})",
        "It could not reach {}.",
    ),
    _sign(
        Code.NETWORK,
        r"Temporary failure in name resolution|Name or service not known|Network is unreachable",
        "It could not reach a host.",
        # A worker no longer finds another one that is gone.
        follows=True,
    ),
    _sign(
        Code.WORKERS,
        r"NCCL error|nccl(?:Remote|System|Internal|UnhandledCuda)Error|collective operation timeout"
        r"|Connection (?:closed|reset) by peer|RendezvousTimeoutError",
        "Its workers lost each other.",
        follows=True,
    ),
)
# The last line of Python's traceback, before which PyTorch puts the rank; what stands behind the colon may be anything.
PYTHON = re.compile(
    r"^(?:\[\w+\]: ?)?(?:\w{1,60}\.){0,6}([A-Z]\w{2,60}(?:Error|Exception|Interrupt))(?=:|$)",
    re.ASCII,
)
# With this torchrun ends when a program that it started has ended with an error of its own.
OF_TORCHRUN = "ChildFailedError"


def cause_in(lines: Iterable[str]) -> tuple[int, Cause] | None:
    """The cause that a program's last lines tell, with the number of its line; None where none tells one.

    The last error ends a program, but what another worker's end brings about comes after that, and so counts only where
    there is nothing else; of an error that is not known Python's name for it is told.
    """
    found: tuple[int, Cause] | None = None
    for number, line in enumerate(lines):
        cause = _told_by(line)
        if cause is None:
            continue
        if found is None or cause.vagueness <= found[1].vagueness:
            found = number, cause
    return found


def _told_by(line: str) -> Cause | None:
    if len(line) > LONGEST_LINE:
        return None
    for one in SIGNS:
        if (match := one.pattern.search(line)) is not None:
            return one.cause(match)
    python = PYTHON.match(line)
    if python is None or python[1] == OF_TORCHRUN:
        return None
    return Cause(Code.PROGRAM, f"Its program ended with the error {python[1]}.")
