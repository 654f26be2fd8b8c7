"""A failed program says why: by how its container ended, by its last words, and by its kept log."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import Caller
from tests.pages import parsed
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.test_runs import ASKED, look_after, submit, until
from workloads.failures.causes import ADVICE, Code
from workloads.failures.of_pods import cause_of, why_failed
from workloads.failures.signs import SIGNS, cause_in
from workloads.models import KeptLog, Run
from workloads.observed import Exit, Pod
from workloads.reasons.starting import RECOVERING
from workloads.runs.ending import end
from workloads.runs.logs.causes import learn_cause
from workloads.runs.logs.keeping import keep_of_ended
from workloads.runs.states import State

AT = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
OUT_OF_GPU_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 11.38 GiB is free."
)
# What torchrun writes after its workers, in its form: longer than what a node keeps of a log.
OF_TORCHRUN = [
    "E1130 09:00:00.000000 139 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1)",
    "Traceback (most recent call last):",
    *[
        '  File "/usr/local/lib/python3.12/site-packages/torch/distributed/run.py", line 918, in main'
    ]
    * 20,
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "============================================================",
    "train.py FAILED",
    "  exitcode  : 1 (pid: 25)",
]


@pytest.mark.parametrize(
    ("line", "code", "what"),
    [
        (
            OUT_OF_GPU_MEMORY,
            Code.GPU_MEMORY,
            "A GPU had no memory left for the 20.00 GiB more that its program needed.",
        ),
        (
            "[default3]:[rank3]: RuntimeError: CUDA error: out of memory",
            Code.GPU_MEMORY,
            "A GPU had no memory left for its program.",
        ),
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.",
            Code.GPU_MEMORY,
            "A GPU had no memory left for its program.",
        ),
        (
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update it.",
            Code.DRIVER,
            "Its image needs a newer NVIDIA driver: that of its node goes up to CUDA 12.2.",
        ),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update your driver",
            Code.DRIVER,
            "Its image needs CUDA 12.6 or newer, for which the driver of its node is too old.",
        ),
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            Code.GPU_KIND,
            "The libraries of its image do not support the kind of GPU that it got.",
        ),
        (
            "RuntimeError: No CUDA GPUs are available",
            Code.NO_GPU,
            "Its program found no GPU that it can use.",
        ),
        (
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            Code.BROKEN_GPU,
            "A GPU that it had is broken.",
        ),
        (
            (
                "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that "
                "dataloader's workers are out of shared memory."
            ),
            Code.SHARED_MEMORY,
            "Its data loaders had no shared memory left.",
        ),
        (
            "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.",
            Code.MEMORY,
            "It had no memory left.",
        ),
        (
            "OSError: [Errno 28] No space left on device",
            Code.DISK,
            "It had no space left to write to.",
        ),
        (
            "ModuleNotFoundError: No module named 'flash_attn.layers'",
            Code.MODULE,
            "Its image lacks the Python module flash_attn.layers.",
        ),
        (
            "/usr/bin/python3: No module named torch",
            Code.MODULE,
            "Its image lacks the Python module torch.",
        ),
        (
            "python: error while loading shared libraries: libcudart.so.12: cannot open shared object file",
            Code.MODULE,
            "Its image lacks the library libcudart.so.12.",
        ),
        (
            "python: can't open file '/src/trian.py': [Errno 2] No such file or directory",
            Code.FILE,
            "There is no file /src/trian.py.",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.parquet'",
            Code.FILE,
            "There is no file /data/train.parquet.",
        ),
        (
            'exec: "torchrun": executable file not found in $PATH',
            Code.COMMAND,
            "Its image has no command torchrun that it may run.",
        ),
        (
            "PermissionError: [Errno 13] Permission denied: '/root/.cache'",
            Code.PERMISSION,
            "It may not open /root/.cache.",
        ),
        (
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/api/whoami-v2",
            Code.REFUSED,
            "huggingface.co refused what it asked for: it is not there, has expired, or needs a valid token.",
        ),
        (
            (
                "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='pypi.org', port=443): Max retries "
                "exceeded with url: /simple/torch/"
            ),
            Code.NETWORK,
            "It could not reach pypi.org.",
        ),
        (
            "fatal: unable to access 'https://git.example.com/x.git/': Could not resolve host: git.example.com",
            Code.NETWORK,
            "It could not reach git.example.com.",
        ),
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, remote process exited",
            Code.WORKERS,
            "Its workers lost each other.",
        ),
        (
            "[rank0]: ValueError: token=hf_secret is not a number",
            Code.PROGRAM,
            "Its program ended with the error ValueError.",
        ),
    ],
)
def test_a_line_tells_a_cause(line: str, code: Code, what: str) -> None:
    found = cause_in(["epoch 1 loss 0.71", line])
    assert found is not None
    assert (found[0], found[1].code, found[1].what) == (1, code, what)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "RuntimeError: unable to write to file </torch_12_3_0>: No space left on device (28)",
            Code.SHARED_MEMORY,
        ),
        (
            (
                "train-0:77:91 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9 bytes: "
                "No space left on device (28)"
            ),
            Code.SHARED_MEMORY,
        ),
        (
            "RuntimeError: unable to open shared memory object </torch_1_2_3> in read-write mode: Too many open files",
            Code.PROGRAM,
        ),
        (
            "  traceback : Signal 9 (SIGKILL) received by PID 25",
            Code.MEMORY,
        ),
        (
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 80.0 GiB for an array with shape (9,)",
            Code.MEMORY,
        ),
        (
            "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'reset'))",
            Code.PROGRAM,
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pymp-abc/listener'",
            Code.PROGRAM,
        ),
    ],
)
def test_what_reads_alike_is_told_apart(line: str, code: Code) -> None:
    found = cause_in([line])
    assert found is not None
    assert found[1].code == code


@pytest.mark.parametrize(
    "line",
    [
        (
            "[W1129 socket.cpp:697] [c10d] The IPv6 network addresses of (train-0, 29500) cannot be retrieved (gai "
            "error: -2 - Name or service not known)."
        ),
        "Error caught was: No module named 'triton'",
        "E0000 cuda_executor.cc:1228] failed call to cuInit: no CUDA-capable device is detected",
        "UserWarning: CUDA initialization: Found no NVIDIA driver on your system.",
        "/start.sh: line 3: nvidia-smi: command not found",
        '10.0.0.1 "GET /metrics HTTP/1.1" 401 Unauthorized',
        "warning: Could not resolve host: metadata.google.internal",
        "subprocess.CalledProcessError: Command '['train.py']' returned non-zero exit status 1.",
        "epoch 3 loss 0.51",
        "warning: memory is at 91 %",
        "no error",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "x" * 5_000 + " CUDA out of memory",
    ],
)
def test_other_lines_tell_none(line: str) -> None:
    assert cause_in([line]) is None


def test_what_says_what_to_change_goes_before_what_its_end_brings_about() -> None:
    lines = [
        OUT_OF_GPU_MEMORY,
        "torch.distributed.DistBackendError: NCCL error: remote process exited",
        "RuntimeError: it is over",
    ]
    found = cause_in(lines)
    assert found is not None
    assert found[1].code == Code.GPU_MEMORY
    found = cause_in(lines[1:])
    assert found is not None
    assert found[1].code == Code.WORKERS


def test_an_error_before_another_worker_is_lost_is_the_cause() -> None:
    found = cause_in(
        [
            "[rank0]: KeyError: 'labels'",
            "[rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited",
        ]
    )
    assert found is not None
    assert found[1].what == "Its program ended with the error KeyError."


def test_an_error_that_python_passes_over_ended_nothing() -> None:
    found = cause_in(
        [
            "ValueError: bad shape",
            "Exception ignored in: <function Pool.__del__ at 0x7f>",
            "Traceback (most recent call last):",
            "AttributeError: 'NoneType' object has no attribute 'dumps'",
        ]
    )
    assert found is not None
    assert "ValueError" in found[1].what


def test_the_last_of_two_errors_ended_it() -> None:
    """Some programs go on with smaller batches when a GPU has no memory left."""
    found = cause_in([OUT_OF_GPU_MEMORY, "OSError: [Errno 28] No space left on device"])
    assert found is not None
    assert found[1].code == Code.DISK


@given(st.lists(st.text(max_size=300), max_size=20))
def test_no_text_breaks_it(lines: list[str]) -> None:
    cause_in(lines)


def test_each_code_has_an_advice_and_each_but_by_the_container_a_sign() -> None:
    assert set(ADVICE) == set(Code)
    by_the_container = {Code.NODE, Code.PROGRAM}
    assert {one.code for one in SIGNS} == set(Code) - by_the_container


def failed(name: str = "train-0", *, after: int = 0, **how: object) -> Pod:
    ended = Exit(at=AT + timedelta(seconds=after), **{"code": 1, **how})  # type: ignore[arg-type]
    return Pod(name=name, phase="Failed", created=AT, exit=ended)


@pytest.mark.parametrize(
    ("pod", "code", "what"),
    [
        (
            failed(code=137, reason="OOMKilled"),
            Code.MEMORY,
            "It took more memory than it may, and was killed.",
        ),
        (failed(code=3), Code.PROGRAM, "Its program ended with exit code 3."),
        (
            failed(code=139),
            Code.PROGRAM,
            "Its program crashed (a segmentation fault).",
        ),
        (failed(code=127), Code.COMMAND, "Its image has no such command."),
        (
            failed(words=f"{OUT_OF_GPU_MEMORY}\n"),
            Code.GPU_MEMORY,
            "A GPU had no memory left for the 20.00 GiB more that its program needed.",
        ),
        (
            Pod(
                name="train-0",
                phase="Failed",
                reason="Evicted",
                message="The node was low on resource: memory.",
            ),
            Code.NODE,
            "Its node ended it, as it ran short itself.",
        ),
        (
            Pod(
                name="train-0",
                phase="Failed",
                reason="Evicted",
                message="Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.",
            ),
            Code.DISK,
            "It wrote more to its node than it may.",
        ),
    ],
)
def test_the_end_of_a_container_tells_a_cause(pod: Pod, code: Code, what: str) -> None:
    found = cause_of(pod)
    assert found is not None
    assert (found.code, found.what) == (code, what)


def test_of_a_pod_that_goes_on_or_ended_well_nothing_is_told() -> None:
    again = Pod(name="train-0", phase="Running", exit=Exit(code=1))
    assert cause_of(again) is None
    assert why_failed([again, Pod(name="b", phase="Succeeded")], since=AT) is None


def test_of_several_pods_that_counts_which_failed_first_and_says_what_to_change() -> (
    None
):
    first = failed("train-3", after=2, words="RuntimeError: CUDA out of memory")
    lost = failed("train-0", after=1, words="torch.DistBackendError: NCCL error")
    later = failed("train-1", after=9, words="OSError: No space left on device")
    found = why_failed([lost, later, first], since=AT)
    assert found is not None
    assert found.code == Code.GPU_MEMORY
    assert (
        found.what == "A GPU had no memory left for its program. It began in train-3."
    )


def test_of_what_follows_from_another_end_no_place_is_told() -> None:
    own = failed("train-0", after=1, words="KeyError: 'labels'")
    lost = failed("train-1", after=30, words="torch.DistBackendError: NCCL error")
    found = why_failed([lost, own], since=AT)
    assert found is not None
    assert found.what == (
        "Its program ended with the error KeyError. It began in train-0."
    )
    alone = why_failed([lost, replace(lost, name="train-2")], since=AT)
    assert alone is not None
    assert alone.what == "Its workers lost each other."


def test_a_pod_in_whose_place_another_came_failed_nothing() -> None:
    gone = Pod(name="train-a", phase="Failed", reason="Terminated", created=AT)
    later = replace(
        failed("train-b", words="RuntimeError: CUDA out of memory"),
        created=AT + timedelta(hours=1),
    )
    found = why_failed([gone, later], since=AT)
    assert found is not None
    assert found.code == Code.GPU_MEMORY


def test_a_node_that_was_full_is_not_the_doing_of_the_pod() -> None:
    full = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi."
    found = cause_of(Pod(name="a", phase="Failed", reason="Evicted", message=full))
    assert found is not None
    assert found.code == Code.NODE
    shared = 'Usage of EmptyDir volume "shared" exceeds the limit "32Gi".'
    found = cause_of(Pod(name="a", phase="Failed", reason="Evicted", message=shared))
    assert found is not None
    assert found.code == Code.SHARED_MEMORY


def test_a_shell_names_the_command_that_it_does_not_know() -> None:
    found = cause_of(failed(code=127, words="sh: 1: accelerate: not found\n"))
    assert found is not None
    assert found.what == "Its image has no command accelerate."


def failing(*lines: str, code: int = 1) -> tuple[str, ...]:
    """A program that writes these lines and ends with this exit code."""
    said = "; ".join(
        f"echo '{one}'" if '"' in one else f'echo "{one}"' for one in lines
    )
    return ("sh", "-c", f"sleep 1; {said}; exit {code}")


def end_with(watched: Watched, *lines: str, code: int = 1) -> Run:
    values = {
        **ASKED.values,
        "launcher": "none",
        "program": failing(*lines, code=code),
    }
    run = submit(watched, replace(ASKED, values=values))
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "failed")
    run.refresh_from_db()
    return run


@pytest.mark.slow
def test_a_run_that_failed_says_why_and_where_that_is_put_right(
    watched: Watched,
) -> None:
    run = end_with(watched, OUT_OF_GPU_MEMORY)
    assert run.cause == Code.GPU_MEMORY
    told = Caller(watched.ada).get(f"runs/{run.pk}/").json()
    assert told["cause"] == "gpu_memory"
    assert told["message"].startswith("A GPU had no memory left for the 20.00 GiB more")
    assert told["advice"] == Code.GPU_MEMORY.advice
    browser = Client()
    browser.force_login(watched.ada)
    page = parsed(browser.get(f"/runs/{run.pk}").text)
    assert Code.GPU_MEMORY.advice in page.words
    links = {one.words: one.attrs["href"] for one in page.walk() if one.tag == "a"}
    assert links["Choose another kind of GPU"].endswith(f"again={run.pk}#id_flavor")
    listed = parsed(browser.get(f"/teams/{run.team.slug}/runs").text)
    assert Code.GPU_MEMORY.label in listed.words


def test_a_run_that_failed_at_once_was_not_interrupted_before(watched: Watched) -> None:
    """For a moment its pod has failed and its job has not, as if another pod were to come."""
    run = submit(watched)
    attempt = run.run_attempts.create(
        number=1, started_at=run.created_at, ended_at=timezone.now(), why=RECOVERING
    )
    Run.objects.filter(pk=run.pk).update(
        state=State.STARTING, started_at=run.created_at
    )
    end(
        run.pk, State.FAILED, now=timezone.now(), message="It has failed.", cause="disk"
    )
    run.refresh_from_db()
    assert run.last_attempt == attempt


@pytest.mark.slow
def test_what_torchrun_writes_last_hides_no_cause_as_the_log_is_kept(
    watched: Watched,
) -> None:
    run = end_with(watched, OUT_OF_GPU_MEMORY, *OF_TORCHRUN)
    assert run.cause == Code.PROGRAM
    keep_of_ended(now=lambda: timezone.now() + timedelta(seconds=5))
    run.refresh_from_db()
    assert run.cause == Code.GPU_MEMORY
    assert "20.00 GiB" in run.message


@pytest.mark.slow
def test_a_log_that_says_less_than_the_pods_changes_nothing(watched: Watched) -> None:
    run = end_with(watched, "ModuleNotFoundError: No module named 'einops'")
    said = run.message
    KeptLog.objects.create(
        run=run,
        attempt=run.run_attempts.last(),
        pod="other",
        lines="2026-11-30T09:00:00Z.0 ValueError: other",
        kept_at=timezone.now(),
    )
    learn_cause(run.pk)
    run.refresh_from_db()
    assert (run.cause, run.message) == (Code.MODULE, said)
