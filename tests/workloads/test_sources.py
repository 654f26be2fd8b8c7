"""Runs whose source does not come: what git says about it is told in a sentence, on the run and on its page."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from dulwich.repo import Repo

from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.known import BEFORE, NOW, admitted, condition, why, workload
from tests.workloads.test_runs import ASKED, look_after, submit, until
from tests.workloads.test_runs_page import client, page
from workloads.explaining import explain_pods
from workloads.explanations import Action, Outlook
from workloads.observed import Cluster, Facts, Pod
from workloads.reading.pods import pod_of
from workloads.reasons.sources import unfetched
from workloads.templates.pods import FETCH

URL = "https://git.example.com/nlp/train.git"
NO_REF = "The Git ref main2 does not exist at {url}."
NO_HOST = "The Git host of {url} does not answer its pods."
NO_REPOSITORY = "There is no Git repository at {url} that it can read."
MOVED = "The Git host of {url} sends it on to another address, to which no password is handed on."
REFUSES = "The Git host of {url} refuses its name or password."
WAIT, CHANGE, ESCALATE, NEVER = Outlook


def said(line: str) -> str:
    """What stands in the status of a pod whose source did not come."""
    return f"{line}\nNot fetched: main2 of {URL}\n"


def failed(line: str) -> Pod:
    return Pod(
        name="bert-0",
        node="a100-0",
        phase="Failed",
        created=BEFORE,
        failed_before=said(line),
    )


@pytest.mark.parametrize(
    ("line", "sentence", "outlook"),
    [
        ("fatal: couldn't find remote ref main2", NO_REF, CHANGE),
        ("fatal: remote error: upload-pack: not our ref 0a1b2c", NO_REF, CHANGE),
        (f"fatal: repository '{URL}/' not found", NO_REPOSITORY, CHANGE),
        (
            "fatal: could not read Username for 'https://git.example.com': No such device or address",
            NO_REPOSITORY,
            CHANGE,
        ),
        (
            f"fatal: unable to access '{URL}/': The requested URL returned error: 301",
            MOVED,
            CHANGE,
        ),
        (f"fatal: Authentication failed for '{URL}/'", REFUSES, CHANGE),
        (
            f"fatal: unable to access '{URL}/': The requested URL returned error: 403",
            NO_REPOSITORY,
            CHANGE,
        ),
        (
            f"fatal: unable to access '{URL}/': Could not resolve host: git.example.com",
            NO_HOST,
            ESCALATE,
        ),
        (
            f"fatal: unable to access '{URL}/': The requested URL returned error: 503",
            NO_HOST,
            ESCALATE,
        ),
        (
            "fatal: the disk is full",
            "The Git ref main2 could not be fetched from {url}.",
            CHANGE,
        ),
    ],
)
def test_what_git_says_is_told_in_a_sentence(
    line: str, sentence: str, outlook: Outlook
) -> None:
    ended = condition(
        "Finished", is_true=True, reason="Failed", message="Job has failed"
    )
    found = why(workload({"Finished": ended}), pods=(failed(line),))
    assert (found.what, found.outlook) == (sentence.format(url=URL), outlook)
    assert (found.code, found.when, found.since, found.detail) == (
        "never_fetched",
        "It is over.",
        BEFORE,
        line,
    )
    assert (found.step is not None and found.step.action is Action.CHANGE_RUN) == (
        outlook is CHANGE
    )


def test_one_that_is_tried_again_is_not_over() -> None:
    stuck = replace(failed("fatal: couldn't find remote ref main2"), phase="Pending")
    found = why(admitted(), pods=(stuck,))
    assert (found.code, found.what) == ("source_not_fetched", NO_REF.format(url=URL))


def test_pods_without_a_queue_say_it_too() -> None:
    facts = Facts(
        pods=(failed("fatal: couldn't find remote ref main2"),),
        cluster=Cluster(title="training"),
    )
    assert explain_pods(facts, now=NOW).what == NO_REF.format(url=URL)


def test_a_program_that_fails_is_not_blamed_on_its_source() -> None:
    ended = condition("Finished", is_true=True, reason="Failed")
    pods = (
        failed("fatal: couldn't find remote ref main2"),
        Pod(name="bert-1", phase="Failed"),
    )
    assert why(workload({"Finished": ended}), pods=pods).what == "It has failed."
    succeeded = condition("Finished", is_true=True, reason="JobFinished")
    assert (
        why(workload({"Finished": succeeded}), pods=pods[:1]).what == "It has finished."
    )


def test_one_that_came_at_the_second_try_is_forgotten() -> None:
    first = {
        "name": "source",
        "state": {"terminated": {"exitCode": 0}},
        "lastState": {
            "terminated": {"exitCode": 1, "message": said("fatal: timed out")}
        },
    }
    assert unfetched(pod_of({"status": {"initContainerStatuses": [first]}})) is None
    again = {**first, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    assert unfetched(pod_of({"status": {"initContainerStatuses": [again]}})) is not None


@pytest.mark.skipif(
    shutil.which("git") is None, reason="there is no git on this machine"
)
@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("{folder}/origin", NO_REF),
        ("{folder}/nothing", NO_REPOSITORY),
        ("https://127.0.0.1:1/x.git", NO_HOST),
    ],
)
def test_what_a_git_of_this_machine_says_is_understood(
    tmp_path: Path, url: str, sentence: str
) -> None:
    Repo.init(str(tmp_path / "origin"), mkdir=True).close()
    where = url.format(folder=tmp_path)
    done = subprocess.run(
        ["sh", "-ec", FETCH, "fetch", str(tmp_path / "source"), where, "main2"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C"},
    )
    assert done.returncode == 1
    found = unfetched(Pod(name="bert-0", failed_before=done.stderr))
    assert found is not None
    assert found.what == sentence.replace("{url}", where)


@pytest.mark.slow
def test_a_run_and_its_page_name_the_ref_that_does_not_exist(watched: Watched) -> None:
    source = {"url": URL, "revision": "no-such-ref"}
    run = submit(watched, replace(ASKED, script=None, repository=source))
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "failed")
    sentence = f"The Git ref no-such-ref does not exist at {URL}."
    assert run.message == f"{sentence} fatal: couldn't find remote ref no-such-ref"
    words = page(client(watched.ada).get(f"/runs/{run.pk}")).words
    assert f"It ended with an error. {sentence}" in words
    # Its program never began: it did not run, and has nothing that another one could go on from.
    assert (run.started_at, "Started to run" in words) == (None, False)
