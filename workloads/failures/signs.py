"""What programs write when they fail, and which cause it tells: the words of PyTorch, CUDA, NCCL, Python and shells.

A line counts that ends a program: the last of a Python traceback, or what a loader or a container runtime says before
it gives up. Warnings in the same words are written by programs that go on. Of a line only the kind of error is told,
with names that the pattern takes out of it: what else a program writes may be secret. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workloads.failures.causes import Cause, Code

# A longer line holds data, and no error.
LONGEST_LINE = 4_000
# What ended a program is in its last lines; earlier errors were handled.
LAST_LINES = 400
NAME = r"[\w.+-]{1,80}"
PATH = r"[\w./+@=-]{1,150}"
HOST = r"[A-Za-z0-9.-]{1,100}"
# What PyTorch puts before a line, the rank, and torchrun, the process.
BEFORE = r"^(?:\[[\w.-]{1,40}\]: ?){0,2}"
MODULES = r"(?:\w{1,60}\.){0,8}"
# How the last line of a Python traceback begins.
ERROR = (
    rf"{BEFORE}{MODULES}"
    r"(?:_?[A-Z]\w{0,60}(?:Error|Exception|Interrupt)|socket\.gaierror|gaierror)\b"
)


@dataclass(frozen=True, slots=True)
class Sign:
    """A line that tells a cause; the sentence is filled in with the groups of the pattern that have found anything."""

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


def _raised(code: Code, pattern: str, what: str, *, follows: bool = False) -> Sign:
    """A sign in the last line of a traceback."""
    return _sign(code, f"{ERROR}.*?(?:{pattern})", what, follows=follows)


# Of each line the first that matches counts.
SIGNS: Sequence[Sign] = (
    _raised(
        Code.GPU_MEMORY,
        r"out of memory.{0,80}Tried to allocate (\d{1,6}(?:\.\d{1,3})? [KMGT]iB)",
        "A GPU had no memory left for the {} more that its program needed.",
    ),
    _raised(
        Code.GPU_MEMORY,
        r"(?:CUDA|HIP)(?: error:)? out of memory|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED"
        r"|RESOURCE_EXHAUSTED: Out of memory|OOM when allocating",
        "A GPU had no memory left for its program.",
    ),
    _raised(
        Code.DRIVER,
        # 12020 is CUDA 12.2.
        r"driver on your system is too old \(found version (\d\d)0(\d)0\)",
        "Its image needs a newer NVIDIA driver: that of its node goes up to CUDA {}.{}.",
    ),
    _sign(
        Code.DRIVER,
        r"nvidia-container-cli: requirement error: unsatisfied condition: cuda ?>= ?(\d{1,2}\.\d{1,2})",
        "Its image needs CUDA {} or newer, for which the driver of its node is too old.",
    ),
    _raised(
        Code.DRIVER,
        r"CUDA driver version is insufficient|driver on your system is too old"
        r"|forward compatibility was attempted on non supported HW",
        "Its image needs a newer NVIDIA driver than its node has.",
    ),
    _raised(
        Code.GPU_KIND,
        r"no kernel image is available for execution",
        "The libraries of its image do not support the kind of GPU that it got.",
    ),
    _raised(
        Code.NO_GPU,
        r"No CUDA GPUs are available|no CUDA-capable device is detected|Found no NVIDIA driver on your system"
        r"|Torch not compiled with CUDA enabled",
        "Its program found no GPU that it can use.",
    ),
    _raised(
        Code.BROKEN_GPU,
        r"uncorrectable (?:NVLink|ECC) error|GPU has fallen off the bus|CUDA error: hardware stack error",
        "A GPU that it had is broken.",
    ),
    _raised(
        Code.SHARED_MEMORY,
        r"insufficient shared memory|killed by signal: Bus error|</torch_.{0,200}No space left"
        r"|unable to (?:open|allocate|mmap) (?!.{0,200}Too many open files).{0,80}shared memory",
        "Its data loaders had no shared memory left.",
    ),
    _sign(
        Code.SHARED_MEMORY,
        r"NCCL WARN .{0,200}/dev/shm/.{0,200}No space left",
        "Its workers had no shared memory left.",
    ),
    _sign(
        Code.SHARED_MEMORY,
        r"^\s*traceback\s*: Signal 7 \(SIGBUS\) received",
        "A process of it had a bus error, mostly for want of shared memory.",
    ),
    _raised(
        Code.MEMORY,
        r"killed by signal: Killed|Unable to allocate .{0,80} for an array",
        "It had no memory left.",
    ),
    _sign(
        Code.MEMORY,
        rf"{BEFORE}MemoryError\b"
        r"|^terminate called after throwing an instance of 'std::bad_alloc'",
        "It had no memory left.",
    ),
    _sign(
        Code.MEMORY,
        r"^\s*traceback\s*: Signal 9 \(SIGKILL\) received",
        "A process of it was killed, mostly for want of memory.",
    ),
    _raised(
        Code.DISK,
        r"No space left on device|Disk quota exceeded",
        "It had no space left to write to.",
    ),
    _sign(
        Code.MODULE,
        rf"(?:{ERROR}|^\S{{0,100}}python[0-9.]*): No module named '?({NAME})",
        "Its image lacks the Python module {}.",
    ),
    _sign(
        Code.MODULE,
        rf"error while loading shared libraries: ({NAME})",
        "Its image lacks the library {}.",
    ),
    _sign(
        Code.FILE,
        rf"^\S{{0,100}}python[0-9.]*: can't open file '({PATH})'",
        "There is no file {}.",
    ),
    _raised(
        Code.FILE,
        # What is below /tmp/pymp- multiprocessing misses when it is ended by something else.
        rf"No such file or directory: '(?!/tmp/pymp-)({PATH})'",
        "There is no file {}.",
    ),
    _sign(
        Code.COMMAND,
        rf"exec: \"?({PATH})\"?: (?:executable file not found|stat .{{0,200}}no such file|permission denied)",
        "Its image has no command {} that it may run.",
    ),
    _raised(
        Code.PERMISSION,
        rf"Permission denied: '({PATH})'",
        "It may not open {}.",
    ),
    _raised(
        Code.REFUSED,
        rf"40[13] Client Error.{{0,200}} url: https?://({HOST})",
        "{} refused what it asked for: it is not there, has expired, or needs a valid token.",
    ),
    _sign(
        Code.REFUSED,
        r"\bGatedRepoError\b|\bNoCredentialsError\b|Cannot access gated repo|trying to access a gated repo"
        r"|UsageError: api_key not configured",
        "A service refused it for want of a valid token.",
    ),
    _raised(
        Code.NETWORK,
        rf"host='({HOST})', port=\d+\): Max retries exceeded",
        "It could not reach {}.",
    ),
    _sign(
        Code.NETWORK,
        rf"^fatal: .{{0,300}}Could not resolve host: ({HOST})",
        "It could not reach {}.",
    ),
    _raised(
        Code.NETWORK,
        r"Temporary failure in name resolution|Name or service not known|Network is unreachable",
        "It could not reach a host.",
        # A worker no longer finds another one that is gone.
        follows=True,
    ),
    _raised(
        Code.WORKERS,
        r"NCCL|nccl\w{1,40}Error|collective operation timeout|gloo|c10d|TCPStore|Rendezvous|ProcessGroup",
        "Its workers lost each other.",
        follows=True,
    ),
    _sign(
        Code.WORKERS,
        r"Watchdog caught collective operation timeout|\bDistNetworkError\b|\bRendezvousTimeoutError\b",
        "Its workers lost each other.",
        follows=True,
    ),
)
PYTHON = re.compile(
    rf"{BEFORE}{MODULES}([A-Z]\w{{0,60}}(?:Error|Exception|Interrupt))(?=:|$)",
    re.ASCII,
)
# With these a launcher ends whose program has ended with an error of its own.
OF_LAUNCHERS = frozenset({"ChildFailedError", "CalledProcessError", "SignalException"})
# What Python says of an error that it passes over: its traceback follows.
PASSED_OVER = "Exception ignored in"


def cause_in(lines: Sequence[str]) -> tuple[int, Cause] | None:
    """The cause that a program's last lines tell, with the number of its line; None where none tells one.

    What says what to change goes first, the last of several. Then counts an error of any kind, by Python's name for it;
    but what comes after the end of another worker may be of that, and counts last.
    """
    clear: tuple[int, Cause] | None = None
    own: tuple[int, Cause] | None = None
    following: tuple[int, Cause] | None = None
    for number, cause in _told(lines):
        if cause.follows:
            following = following or (number, cause)
        elif cause.code is not Code.PROGRAM:
            clear = number, cause
        elif following is None or own is None:
            own = number, cause
    if own is not None and following is not None and following[0] < own[0]:
        return clear or following
    return clear or own or following


def _told(lines: Sequence[str]) -> Iterable[tuple[int, Cause]]:
    """The causes that the last lines tell, each with the number of its line."""
    first = max(0, len(lines) - LAST_LINES)
    is_passed_over = False
    for number, line in enumerate(lines[first:], first):
        if line.startswith(PASSED_OVER):
            is_passed_over = True
            continue
        cause = _told_by(line)
        if cause is None:
            continue
        if not is_passed_over:
            yield number, cause
        is_passed_over = False


def _told_by(line: str) -> Cause | None:
    if len(line) > LONGEST_LINE:
        return None
    for one in SIGNS:
        if (match := one.pattern.search(line)) is not None:
            return one.cause(match)
    python = PYTHON.match(line)
    if python is None or python[1] in OF_LAUNCHERS:
        return None
    return Cause(Code.PROGRAM, f"Its program ended with the error {python[1]}.")
