"""Against a portal that is served: choosing, submitting, following, finding and ending runs, and how commands end."""

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.roles import Role
from allocations.models import Allocation
from fleet.models import Flavor
from fleet.versions.reading import versions_of
from tests import factories
from tests.qm.conftest import Signed
from tests.services.process import wait_until
from workloads.models import Run
from workloads.template_desk import actions

IMAGE = ("--image", "registry.example.com/vision/train:1")
TRAIN = (
    "train",
    *IMAGE,
    "--gpus",
    "2",
    "--set",
    "cpus=4",
    "--set",
    "memory=16",
    "--time",
    "1h",
)
SHORT = (
    *TRAIN,
    "--name",
    "Fine-tune BERT",
    "--set",
    "launcher=none",
    "--",
    "sleep",
    "1",
)


def cells(text: str) -> list[str]:
    """Lines whose columns are one space apart."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_places_tell_what_is_held_and_what_templates_lack(signed: Signed) -> None:
    said = cells(signed.terminal("places").stdout)
    namespace = signed.watched.namespace

    assert said[0] == f"training/{namespace}"
    assert "team Vision (vision), project main" in said
    assert any(line.startswith("GPUs 2 × a100 (A100, 8 on a node, ") for line in said)
    assert any(
        line.startswith("not mpi The cluster does not know MPIJob") for line in said
    )
    [found] = signed.terminal.json("places")["results"]
    assert (found["namespace"], found["flavors"][0]["gpus"]) == (namespace, 2)


def test_places_tell_up_to_which_cuda_a_kind_goes(signed: Signed) -> None:
    labels = {"nvidia.com/cuda.runtime-version.full": "12.8"}
    seen = versions_of([{"metadata": {"labels": labels}}])
    Flavor.objects.update(versions=seen)
    said = cells(signed.terminal("places").stdout)
    [line] = [one for one in said if one.startswith("GPUs ")]
    assert line.endswith(" USD an hour, CUDA up to 12.8)")


def test_a_template_tells_its_options_with_help_and_limits(signed: Signed) -> None:
    assert "single-node" in signed.terminal("templates").stdout
    said = cells(signed.terminal("templates", "pytorch").stdout)
    assert (
        "--nodes 2 2 to 256 Nodes: How many nodes take part; all start together."
        in said
    )
    assert any(line.startswith("--time 1d 5m to 30d ") for line in said)
    assert "--image needed image Image: What the pods run, with its tag." in said
    # The unit stands in the title.
    assert any(
        line.startswith("--set memory 64 1 to 4096 Memory on each node (GiB): ")
        for line in said
    )
    assert any(
        line.startswith("--set grace 120 0 to 3600 Grace (seconds): ") for line in said
    )
    assert signed.terminal.json("templates", "pytorch")["slug"] == "pytorch"
    refused = signed.terminal("templates", "magic")
    assert (refused.exit_code, refused.stdout) == (6, "")
    assert "There are: single-node, pytorch" in refused.stderr


def test_with_one_place_and_one_kind_of_gpu_nothing_has_to_be_chosen(
    signed: Signed,
) -> None:
    signed.terminal.home.mkdir()
    script = signed.terminal.home / "train.py"
    script.write_text("print('hello')\n")
    more = (
        "--claim",
        "datasets:/data:ro",
        "--env",
        "EPOCHS=3",
        "--secret",
        "HF_TOKEN=huggingface:token",
        "--script",
        str(script),
    )

    done = signed.terminal(*TRAIN, *more, "--", "--epochs", "3")

    assert done.exit_code == 0, done.stderr
    run = Run.objects.get()
    assert done.stdout == f"{run.name}\n"
    assert done.stderr == f"Submitted: {run.name} ({run.pk}).\n"
    assert run.tenancy_id == signed.watched.tenancy.pk
    assert run.submission == {
        "template": "single-node",
        "title": "train",
        "flavor": "a100",
        "priority": "",
        "values": {
            "image": IMAGE[1],
            "gpus": 2,
            "minutes": 60,
            "cpus": 4,
            "memory": 16,
            "program": ["train.py", "--epochs", "3"],
        },
        "script": {"file": "train.py", "text": "print('hello')\n"},
        "repository": None,
        "claims": [{"name": "datasets", "path": "/data", "read_only": True}],
        "variables": {"EPOCHS": "3"},
        "secrets": [{"variable": "HF_TOKEN", "secret": "huggingface", "key": "token"}],
    }


@pytest.mark.slow
def test_a_dry_run_tells_the_price_and_the_name_that_its_key_gives(
    signed: Signed,
) -> None:
    dry = signed.terminal(*TRAIN, "--dry-run", "--key", "mine", "--", "train.py")
    shown = signed.terminal(*TRAIN, "--manifest", "--key", "mine", "--", "train.py")

    assert dry.exit_code == 0, dry.stderr
    assert "GPUs        2 × a100\n" in dry.stdout
    assert "USD an hour" in dry.stdout
    assert (
        "start       It can start at once. 2 of your 2 × A100 are free now.\n"
        in dry.stdout
    )
    assert "--key mine instead of --dry-run" in dry.stderr
    assert "GPUs end" not in dry.stdout
    end = timezone.now() + timedelta(minutes=5)
    Allocation.objects.update(until=end, kept_until=end, remind_at=None)
    dry = signed.terminal(*TRAIN, "--dry-run", "--key", "mine", "--", "train.py")
    assert "GPUs end" in dry.stdout
    assert "Its GPUs end before it may" in dry.stdout
    assert not Run.objects.exists()
    submitted = signed.terminal(*TRAIN, "--key", "mine", "--", "train.py")
    run = Run.objects.get()
    assert submitted.stdout == f"{run.name}\n"
    assert f"run         {run.name}\n" in dry.stdout
    assert json.loads(shown.stdout) == run.manifests
    assert (
        signed.terminal(*TRAIN, "--key", "mine", "--", "train.py").stdout
        == submitted.stdout
    )
    assert Run.objects.count() == 1


def test_a_dry_run_names_the_volume_that_the_portal_does_not_keep(
    signed: Signed,
) -> None:
    dry = signed.terminal(
        *TRAIN, "--claim", "elsewhere:/data", "--dry-run", "--", "train.py"
    )
    assert dry.exit_code == 0, dry.stderr
    assert "The portal keeps no volume elsewhere there" in dry.stderr


@pytest.mark.slow
def test_what_stands_in_the_way_is_said_by_option_and_ends_with_3(
    signed: Signed,
) -> None:
    for more in (("--dry-run",), ()):
        refused = signed.terminal(*TRAIN, "--gpus", "8", *more, "--", "train.py")
        assert (refused.exit_code, refused.stdout) == (3, "")
        assert refused.stderr.startswith("--gpus: It takes 8 × A100")
        assert "ask for 6 more" in refused.stderr
        link = f"The form for them, filled in: {signed.url}/requests/new"
        assert (link in refused.stderr) is bool(more)
    unknown = signed.terminal(*TRAIN, "--set", "turbo=1", "--", "train.py")
    assert (unknown.exit_code, unknown.stderr) == (
        3,
        "--set turbo: There is no such parameter.\n",
    )
    wrong = signed.terminal(*TRAIN, "--name", "x" * 61, "--", "train.py")
    assert wrong.exit_code == 3
    assert wrong.stderr.startswith("--name: ")
    long = signed.terminal(*TRAIN, "--time", "100d", "--", "train.py")
    assert (long.exit_code, long.stderr) == (
        2,
        "--time 100d: this template takes 5m to 30d.\n",
    )
    several = signed.terminal(*TRAIN, "--nodes", "2", "--", "train.py")
    assert several.exit_code == 3
    assert "pytorch: The cluster does not know JobSet" in several.stderr
    assert not Run.objects.exists()


def test_a_script_that_is_too_large_is_named_with_the_way_to_bring_it(
    signed: Signed,
) -> None:
    signed.terminal.home.mkdir()
    script = signed.terminal.home / "train.py"
    for size, said in (
        (300, "The script has 300 KiB; at most 256 KiB can be pasted. Use Git."),
        (700, "--git"),
    ):
        script.write_text("#" * size * 1024)
        refused = signed.terminal(*TRAIN, "--script", str(script))
        assert refused.exit_code == 3
        assert "--script" in refused.stderr
        assert said in refused.stderr


@pytest.mark.slow
def test_a_run_that_finishes_is_followed_to_its_end(busy: Signed) -> None:
    done = busy.terminal(*SHORT[:-3], "--follow", "--", "sleep", "1")

    assert done.exit_code == 0, done.stderr
    name = Run.objects.get().name
    assert done.stdout.startswith("rank 0 on a100-")
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"Submitted: {name}")
    assert lines[1] == f"{name}: submitted."
    assert lines[-1].startswith(f"{name}: finished after ")
    assert busy.terminal("wait", name).exit_code == 0
    assert busy.terminal("logs", name).exit_code in (0, 3)


@pytest.mark.slow
def test_all_workers_are_followed_to_the_end_of_their_run(busy: Signed) -> None:
    name = busy.terminal(*SHORT[:-3], "--", "sleep", "1").stdout.strip()

    done = busy.terminal("logs", name, "-f", "--all-workers")

    assert done.exit_code == 0, done.stderr
    assert re.match(rf"\[{name}-\w+\] rank 0 on a100-", done.stdout)
    assert done.stderr.splitlines()[-1].startswith(f"{name}: finished after ")


@pytest.mark.slow
def test_one_that_waits_says_why_and_one_that_was_stopped_ends_with_1(
    busy: Signed,
) -> None:
    first = busy.terminal(*TRAIN, "--name", "first", "--", "train.py").stdout.strip()
    busy.until("running")

    def is_taken() -> bool:
        busy.step()
        dry = busy.terminal(*TRAIN, "--dry-run", "--", "train.py").stdout
        return "It waits in line first. 0 of your 2 × A100 are free now." in dry

    wait_until(is_taken, what="the first to hold both GPUs")
    second = busy.terminal(*TRAIN, "--name", "second", "--", "train.py").stdout.strip()

    assert [one["name"] for one in busy.terminal.json("list")["results"]] == [
        second,
        first,
    ]

    def is_explained() -> bool:
        busy.step()
        return busy.terminal("why", "second").stdout.startswith(
            "It waits for 2 × A100 more."
        )

    wait_until(is_explained, what="the second to be in the line")
    [listed, _] = busy.terminal.json("list")["results"]
    assert listed["why"]["what"].startswith("It waits for 2 × A100 more.")
    lines = busy.terminal("list").stdout.splitlines()
    assert re.search(
        r"USD  \d\d-\d\d \d\d:\d\d  It waits for 2 × A100 more\.", lines[1]
    )
    assert re.search(r"running .*USD  \d\d-\d\d \d\d:\d\d$", lines[2])
    said = busy.terminal("why", "second").stdout
    assert "number 1 of 1 in the line" in said
    found = busy.terminal.json("show", second)
    assert found["why"]["what"] in said
    assert found["why"]["do"] in said
    dry = busy.terminal("limit", "first", "+2h", "--dry-run").stdout
    assert "3 h" in dry.splitlines()[0]
    assert busy.terminal.json("show", "first")["limit_seconds"] == 3_600
    set_ = busy.terminal("limit", "first", "+2h")
    assert set_.stdout == dry
    assert busy.terminal.json("show", "first")["limit_seconds"] == 3 * 3_600
    unread = busy.terminal("limit", "first", "soon")
    assert (unread.exit_code, unread.stderr) == (
        2,
        "TIME takes a time such as 4h, 90m, 1h30m or 2d, not 'soon'.\n",
    )

    stopped = busy.terminal("stop", "second", "--wait")
    assert (stopped.exit_code, stopped.stderr.splitlines()[-1]) == (
        0,
        f"{second}: stopped.",
    )
    assert "waiting" not in stopped.stderr
    assert busy.terminal("wait", second).exit_code == 1
    twice = busy.terminal("stop", second)
    assert (twice.exit_code, twice.stderr) == (0, f"{second}: stopped.\n")
    again = busy.terminal("again", second).stdout.strip()
    assert again.startswith("second-")
    assert again != second
    assert Run.objects.get(name=again).again_of == Run.objects.get(name=second)
    nothing = busy.terminal("again", second, "--from-checkpoint")
    assert (
        nothing.exit_code,
        "was told no place for checkpoints" in nothing.stderr,
    ) == (3, True)
    assert "worker" in busy.terminal("show", first).stdout


@pytest.mark.slow
def test_one_that_begins_after_another_says_so_and_is_waited_for_to_its_end(
    busy: Signed,
) -> None:
    first = busy.terminal(*SHORT).stdout.strip()
    number = Run.objects.get(name=first).pk
    later = [*SHORT[: SHORT.index("--name")], "--after", first, "--name", "Evaluate"]
    program = SHORT[SHORT.index("Fine-tune BERT") + 1 :]
    dry = cells(busy.terminal(*later, "--dry-run", *program).stdout)
    assert any(
        line.startswith("start It begins when Fine-tune BERT has finished. ")
        for line in dry
    )
    second = busy.terminal(*later, *program).stdout.strip()
    said = f"It begins when run {number}, Fine-tune BERT, has finished."
    [listed] = [line for line in cells(busy.terminal("list").stdout) if second in line]
    assert " blocked " in listed
    assert listed.endswith(said)
    shown = cells(busy.terminal("show", second).stdout)
    assert f"begins after {first} ({number})" in shown
    told = busy.terminal("why", second).stdout.splitlines()
    assert [line.startswith(f"{said} (since ") for line in told[:1]] == [True]
    assert told[-1] == (
        f"Wait: it is sent by itself. If run {number} does not finish, this one is skipped."
    )
    assert all(line in shown for line in told)
    waited = busy.terminal("wait", second)
    assert waited.exit_code == 0, waited.stderr
    assert f"{second}: blocked. {said}" in waited.stderr
    assert f"{second}: finished after" in waited.stderr
    assert Run.objects.get(pk=number).state == "finished"


@pytest.mark.slow
def test_what_would_begin_after_a_run_that_was_stopped_is_refused_by_its_option(
    signed: Signed,
) -> None:
    first = signed.terminal(*SHORT).stdout.strip()
    after = [*TRAIN, "--after", first]
    second = signed.terminal(*after, "--", "evaluate.py").stdout.strip()
    Run.objects.filter(name=first).update(
        state="gone", ended_at=timezone.now(), message="It is gone."
    )
    refused = signed.terminal(*after, "--", "evaluate.py")
    assert refused.exit_code == 3
    assert "--after: Run " in refused.stderr
    assert "did not finish: deleted on the cluster." in refused.stderr
    assert signed.terminal(*TRAIN, "--after", "none", "--", "x.py").exit_code == 6
    third = signed.terminal(*TRAIN, "--after", second, "--", "x.py").stdout.strip()
    stopped = signed.terminal("stop", second)
    skipped = Run.objects.get(name=third)
    assert stopped.stderr.splitlines() == [
        f"{second}: stopped.",
        f"Skipped with it: {third} ({skipped.pk}).",
    ]
    assert skipped.state == "skipped"


@pytest.mark.slow
def test_one_is_submitted_again_after_another_or_after_none(signed: Signed) -> None:
    first, other = (
        signed.terminal(*SHORT, "--key", key).stdout.strip() for key in ("1", "2")
    )
    after_first = ("--after", first, "--", "evaluate.py")
    run = signed.terminal(*TRAIN, *after_first).stdout.strip()

    def again(*typed: str) -> Run:
        done = signed.terminal("again", run, *typed)
        assert done.exit_code == 0, done.stderr
        return Run.objects.get(name=done.stdout.strip())

    number = Run.objects.get(name=other).pk
    dry = cells(signed.terminal("again", run, "--after", other, "--dry-run").stdout)
    before = Run.objects.get(name=first).pk
    assert f"Begins after run {before} becomes run {number}" in dry
    after_other, as_before, at_once = (
        again("--after", other),
        again(),
        again("--after", ""),
    )
    assert (after_other.state, after_other.after_id) == ("blocked", number)
    assert (as_before.state, as_before.after_id) == ("blocked", before)
    assert (at_once.state, at_once.after_id) == ("submitted", None)
    itself = signed.terminal("again", first, "--after", first).stdout.strip()
    assert Run.objects.get(name=itself).after_id == before
    assert signed.terminal("again", run, "--after", "none").exit_code == 6


@pytest.mark.slow
def test_one_that_is_over_goes_on_from_its_checkpoints(signed: Signed) -> None:
    kept = ("--claim", "datasets:/data", "--checkpoint", "/data/checkpoints")
    first = signed.terminal(*TRAIN, *kept, "--", "train.py").stdout.strip()
    early = signed.terminal("again", first, "--from-checkpoint")
    assert (early.exit_code, "Stop it first" in early.stderr) == (3, True)
    now = timezone.now()
    Run.objects.update(state="failed", started_at=now, ended_at=now)

    on = signed.terminal("again", first, "--from-checkpoint", "--key", "mine")

    assert on.exit_code == 0, on.stderr
    said = cells(signed.terminal("show", on.stdout.strip()).stdout)
    assert f"goes on from {Run.objects.get(name=first).pk}" in said
    assert f"checkpoints /data/checkpoints/{first}" in said
    assert (
        signed.terminal("again", first, "--from-checkpoint", "--key", "mine").stdout
        == on.stdout
    )
    assert Run.objects.count() == 2


@pytest.mark.slow
def test_it_goes_on_with_other_values_and_says_first_which(signed: Signed) -> None:
    kept = (
        "--claim",
        "datasets:/data",
        "--checkpoint",
        "/data/checkpoints",
        "--time",
        "60m",
    )
    first = signed.terminal(*TRAIN, *kept, "--", "train.py").stdout.strip()
    now = timezone.now()
    Run.objects.update(state="failed", started_at=now, ended_at=now)
    other = (
        "--set",
        "cpus=16",
        "--set",
        "program=train.py --lr 1e-5",
        "--time",
        "2h",
        "--env",
        "EPOCHS=5",
    )

    shown = signed.terminal(
        "again", first, "--from-checkpoint", *other, "--dry-run", "--key", "mine"
    )

    assert shown.exit_code == 0, shown.stderr
    said = cells(shown.stdout)
    assert "Time limit (minutes) 60 becomes 120" in said
    assert "Program train.py becomes train.py --lr 1e-5" in said
    assert "EPOCHS nothing becomes 5" in said
    assert Run.objects.count() == 1
    on = signed.terminal("again", first, "--from-checkpoint", *other, "--key", "mine")
    assert on.exit_code == 0, on.stderr
    made = Run.objects.get(name=on.stdout.strip())
    assert f"run {made.name}" in said
    values = made.submission["values"]
    assert (values["cpus"], values["minutes"], values["program"]) == (
        16,
        120,
        ["train.py", "--lr", "1e-5"],
    )
    assert made.submission["variables"] == {"EPOCHS": "5"}
    assert made.is_resumed
    long = signed.terminal("again", first, "--from-checkpoint", "--time", "100d")
    assert (long.exit_code, long.stderr) == (
        2,
        "--time 100d: this template takes 5m to 30d.\n",
    )
    wrong = signed.terminal("again", first, "--from-checkpoint", "--set", "speed=1")
    assert (wrong.exit_code, "There is no such parameter" in wrong.stderr) == (3, True)
    assert Run.objects.count() == 2


@pytest.mark.slow
def test_it_is_submitted_anew_with_other_values_and_says_first_which(
    signed: Signed,
) -> None:
    first = signed.terminal(*TRAIN, "--", "train.py").stdout.strip()
    other = ("--image", "registry.example.com/vision/train:2", "--set", "cpus=16")
    shown = signed.terminal("again", first, *other, "--dry-run", "--key", "mine")
    assert shown.exit_code == 0, shown.stderr
    assert f"Image {IMAGE[1]} becomes {other[1]}" in cells(shown.stdout)
    assert Run.objects.count() == 1
    anew = signed.terminal("again", first, *other, "--key", "mine")
    assert anew.exit_code == 0, anew.stderr
    made = Run.objects.get(name=anew.stdout.strip())
    assert (made.again_of_id, made.is_resumed) == (Run.objects.earliest("pk").pk, False)
    assert made.submission["values"]["image"] == other[1]
    assert made.submission["values"]["cpus"] == 16
    assert (
        signed.terminal("again", first, *other, "--key", "mine").stdout == anew.stdout
    )


@pytest.mark.slow
def test_it_is_submitted_anew_with_another_template(signed: Signed) -> None:
    first = signed.terminal(*TRAIN, "--", "train.py").stdout.strip()
    several = signed.terminal("again", first, "--nodes", "2")
    assert several.exit_code == 3
    assert "pytorch: The cluster does not know JobSet" in several.stderr
    other = ("--template", "sweep", "--set", "trials=3", "--set", "at_once=1")
    shown = signed.terminal("again", first, *other, "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert "template sweep" in cells(shown.stdout)
    assert "Template single-node becomes sweep" in cells(shown.stdout)
    anew = signed.terminal("again", first, *other)
    assert anew.exit_code == 0, anew.stderr
    made = Run.objects.get(name=anew.stdout.strip())
    assert (made.template, made.submission["values"]["trials"]) == ("sweep", 3)


@pytest.mark.slow
def test_the_last_lines_of_a_log_are_told_as_the_api_tells_them(busy: Signed) -> None:
    name = busy.terminal(*TRAIN, "--", "train.py").stdout.strip()
    early = busy.terminal("logs", name)
    assert (early.exit_code, early.stderr) == (3, "The run has no pod yet.\n")
    busy.until("running")

    said = busy.terminal("logs", name, "--tail", "1")
    found = busy.terminal.json("logs", name, "--worker", "0")

    assert said.exit_code == 0, said.stderr
    assert len(said.stdout.splitlines()) == 1
    assert found["lines"][0]["text"].startswith("rank 0 on a100-")
    every = busy.terminal("logs", name, "--all-workers").stdout
    assert re.match(rf"\[{name}-\w+\] rank 0 on ", every)
    assert busy.terminal("logs", name, "--worker", "9").exit_code == 6
    assert busy.terminal("logs", name, "--pod", "other", "-f").exit_code == 6


@pytest.mark.slow
def test_a_run_is_found_by_its_number_its_name_and_the_beginning_of_it(
    signed: Signed,
) -> None:
    names = [
        signed.terminal(*TRAIN, "--name", title, "--", "train.py").stdout.strip()
        for title in ("alpha", "alpha two", "beta")
    ]
    numbers = [Run.objects.get(name=name).pk for name in names]

    assert [signed.terminal.json("show", str(pk))["name"] for pk in numbers] == names
    assert [signed.terminal.json("show", name)["name"] for name in names] == names
    assert signed.terminal.json("show", "be")["name"] == names[2]
    several = signed.terminal("show", "alpha")
    assert several.exit_code == 2
    assert f"  {numbers[0]}  {names[0]}  submitted" in several.stderr
    for unknown in ("gamma", "999999"):
        assert signed.terminal("show", unknown).exit_code == 6


def test_lists_are_the_apis_json_from_as_many_pages_as_it_takes(signed: Signed) -> None:
    for number in range(3):
        signed.terminal(*TRAIN, "--name", f"run {number}", "--", "train.py")
    assert len(signed.terminal.json("list")["results"]) == 3
    assert len(signed.terminal.json("list", "--limit", "2")["results"]) == 2
    assert signed.terminal.json("list", "--state", "running")["results"] == []
    assert (
        len(
            signed.terminal.json("list", "--mine", "--all", "--team", "vision")[
                "results"
            ]
        )
        == 3
    )
    said = signed.terminal("list", "--limit", "2")
    assert said.stdout.splitlines()[0].split() == [
        "id", "name", "state", "GPUs", "cluster", "team", "by", "submitted", "cost", "since", "why",
    ]  # fmt: skip
    assert re.search(
        r" UTC  0\.00 USD  \d\d-\d\d \d\d:\d\d$", said.stdout.splitlines()[1]
    )
    assert "\x1b" not in said.stdout
    assert said.stderr == "There are more: --limit shows them.\n"


def test_a_list_of_a_team_that_there_is_not_is_refused(signed: Signed) -> None:
    wrong = signed.terminal("list", "--team", "visoin")
    assert wrong.exit_code == 6
    assert wrong.stderr == (
        "There is no team visoin that you may see. Your teams: vision.\n"
    )
    assert signed.terminal("list", "--team", "visoin", "--json").exit_code == 6
    empty = signed.terminal("list", "--team", "vision")
    assert (empty.exit_code, empty.stderr) == (
        0,
        "None runs or waits: --all shows earlier ones.\n",
    )


def test_a_kind_of_gpu_is_taken_in_capitals_too(signed: Signed) -> None:
    done = signed.terminal(*TRAIN, "--flavor", "A100", "--", "train.py")
    assert done.exit_code == 0
    assert Run.objects.filter(flavor__name="a100").exists()


def test_a_number_in_words_is_refused_with_what_to_write(signed: Signed) -> None:
    done = signed.terminal("train", *IMAGE, "--gpus", "two", "--", "train.py")
    assert done.exit_code == 2
    assert "'--gpus': Write a whole number of at least 0, not 'two'." in done.stderr
    many = signed.terminal("logs", "1", "--tail", "9999")
    assert "Write a whole number from 1 to 5000, not '9999'." in many.stderr


def test_several_places_and_kinds_are_named_with_the_option_that_chooses(
    signed: Signed,
) -> None:
    watched = signed.watched
    h100 = factories.flavor(watched.cluster, "h100")
    factories.allocation(watched.ada, watched.tenancy, h100, gpus=1)
    which = signed.terminal(*TRAIN, "--", "train.py")
    assert (which.exit_code, which.stderr) == (
        2,
        "Choose a kind of GPU with --flavor: a100, h100.\n",
    )
    assert signed.terminal(*TRAIN, "--flavor", "a100", "--", "train.py").exit_code == 0
    wrong = signed.terminal(*TRAIN, "--place", "training/other", "--", "train.py")
    assert wrong.exit_code == 6
    assert f"training/{watched.namespace} (team vision)" in wrong.stderr


def test_a_template_of_the_platform_team_chooses_the_kind_by_memory_and_is_never_chosen_unnamed(
    signed: Signed,
) -> None:
    watched, lead = signed.watched, factories.person("", Role.PLATFORM_LEAD)
    small = factories.flavor(watched.cluster, "small", memory_gb=10)
    factories.allocation(watched.ada, watched.tenancy, small, gpus=2)
    recipe = (
        "{slug: recipe, title: Recipe, help: Ours., shape: single-node, gpu_memory: 40}"
    )
    actions.keep(recipe, by=lead, now=timezone.now())
    assert "recipe" in signed.terminal("templates").stdout
    assert (
        signed.terminal(*TRAIN, "--template", "recipe", "--", "train.py").exit_code == 0
    )
    assert signed.terminal(*TRAIN, "--flavor", "a100", "--", "train.py").exit_code == 0
    made = Run.objects.order_by("id").values_list(
        "template", "template_version", "flavor__name"
    )
    assert [*made] == [("recipe", 1, "a100"), ("single-node", 0, "a100")]
    actions.take_back("recipe", by=lead, now=timezone.now())
    gone = signed.terminal(*TRAIN, "--template", "recipe", "--", "train.py")
    assert gone.exit_code == 6
    assert "There is no template recipe." in gone.stderr


def test_somebody_elses_run_is_not_there_and_a_wrong_token_is_said(
    signed: Signed,
) -> None:
    signed.terminal(*TRAIN, "--", "train.py")
    run = Run.objects.get()
    stranger = signed.of(factories.person("Grace Hopper"))

    for command in ("show", "why", "stop", "logs", "wait", "again"):
        assert stranger(command, str(run.pk)).exit_code == 6
    assert stranger("again", str(run.pk), "--from-checkpoint").exit_code == 6
    assert stranger(*TRAIN, "--", "train.py").exit_code == 3
    refused = signed.terminal("list", QM_TOKEN="qm_wrong")
    assert refused.exit_code == 4
    assert "qm login" in refused.stderr
    assert "qm_wrong" not in refused.output
