"""What a run takes of Secrets in its namespace: by name alone, in the container that needs it, told when it lacks."""

import base64
import os
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from provisioning.desired.variables import SecretVariable
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.runs import run as run_of_template
from tests.workloads.test_explaining_pods import stuck
from tests.workloads.test_runs import ASKED, follow, look_after, submit, until
from tests.workloads.test_runs_api import body
from tests.workloads.test_runs_page import address, client, filled, form, page
from web.refusals import BadInput
from workloads.explanations import Action, Outlook
from workloads.models import ClusterObject, Run
from workloads.runs import actions
from workloads.templates.library import BY_SLUG, TEMPLATES, Template
from workloads.templates.pods import Manifest
from workloads.templates.run import Repository

URL = "https://git.example.com/nlp/train.git"
TOKEN = {"variable": "HF_TOKEN", "secret": "huggingface", "key": "token"}
PRIVATE = {"url": URL, "revision": "main", "secret": "git-read"}
ASKS = replace(ASKED, secrets=[TOKEN])
FETCHES = replace(ASKED, script=None, repository=PRIVATE)


def containers(found: Any, word: str = "containers") -> list[Manifest]:
    """Every container of the objects of a run, wherever it stands."""
    if isinstance(found, list):
        return [one for each in found for one in containers(each, word)]
    if not isinstance(found, dict):
        return []
    here = found.get(word, []) if isinstance(found.get(word), list) else []
    return [*here, *containers([*found.values()], word)]


def environment(container: Manifest) -> dict[str, Any]:
    """The variables of a container: a value, or what it is taken from."""
    return {
        one["name"]: one.get("value", one.get("valueFrom"))
        for one in container.get("env", ())
    }


def make_secret(watched: Watched, name: str, **values: str) -> None:
    """A member makes a Secret in the namespace."""
    data = {
        key: base64.b64encode(text.encode()).decode() for key, text in values.items()
    }
    where = f"/api/v1/namespaces/{watched.namespace}/secrets"
    watched.kubernetes.write("POST", where, {"metadata": {"name": name}, "data": data})


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda one: one.slug)
def test_each_pod_of_a_run_takes_the_value_from_the_secret(template: Template) -> None:
    run = replace(
        run_of_template(template),
        secrets=(SecretVariable("HF_TOKEN", "huggingface", "token"),),
    )
    assert template.refused(run) is None
    wanted = {"secretKeyRef": {"name": "huggingface", "key": "token"}}
    made = template.render(run)
    trainer = [one["spec"]["trainer"] for one in made if one["kind"] == "TrainJob"]
    pods = trainer or containers(made)
    assert pods
    assert all(environment(one)["HF_TOKEN"] == wanted for one in pods)


def test_only_what_fetches_a_private_source_has_its_password() -> None:
    template = BY_SLUG["single-node"]
    source = Repository(URL, "main", "registry.example.com/git:2", "git-read")
    made = template.render(
        replace(run_of_template(template), script=None, repository=source)
    )
    [fetch], [main] = containers(made, "initContainers"), containers(made)
    given = environment(fetch)
    # Of a host that sends git elsewhere it would hand the password on there.
    assert given["GIT_CONFIG_KEY_1"] == "http.followRedirects"
    assert given["GIT_CONFIG_VALUE_1"] == "false"
    assert given["GIT_PASSWORD"] == {
        "secretKeyRef": {"name": "git-read", "key": "password"}
    }
    assert given["GIT_USERNAME"]["secretKeyRef"]["optional"]
    assert "git-read" not in str(fetch["command"])
    assert not any("GIT" in name for name in environment(main))


@pytest.mark.skipif(
    shutil.which("git") is None, reason="there is no git on this machine"
)
@pytest.mark.parametrize(
    ("host", "name", "told"),
    [
        ("git.example.com", "ada", "username=ada\npassword=hunter 2\\n"),
        ("git.example.com", "", "username=git\npassword=hunter 2\\n"),
        ("elsewhere.example.com", "ada", None),
    ],
)
def test_git_gets_the_password_for_the_host_of_the_source_alone(
    host: str, name: str, told: str | None
) -> None:
    template = BY_SLUG["single-node"]
    source = Repository(URL, "main", "registry.example.com/git:2", "git-read")
    made = template.render(
        replace(run_of_template(template), script=None, repository=source)
    )
    [fetch] = containers(made, "initContainers")
    given = {
        key: value
        for key, value in environment(fetch).items()
        if isinstance(value, str)
    }
    secret = {"GIT_PASSWORD": "hunter 2\\n", **({"GIT_USERNAME": name} if name else {})}
    done = subprocess.run(
        ["git", "credential", "fill"],
        input=f"protocol=https\nhost={host}\n\n",
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": "/nonexistent",
            **given,
            **secret,
        },
    )
    assert (told in done.stdout) if told is not None else done.returncode != 0


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"variable": "1A"}, "secrets", "no name of a variable"),
        ({"variable": "PATH"}, "secrets", "a run cannot set it"),
        ({"secret": "Hugging Face"}, "secrets", "no name of a Secret"),
        ({"key": "a/b"}, "secrets", "no key of a Secret"),
    ],
)
def test_a_secret_is_refused_at_its_field(
    watched: Watched, changed: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        submit(watched, replace(ASKED, secrets=[{**TOKEN, **changed}]))
    problems = getattr(refused.value, "problems", [refused.value])
    assert [one.field for one in problems] == [field]


def test_what_cannot_be_together_is_refused(watched: Watched) -> None:
    twice = [
        replace(ASKS, variables={"HF_TOKEN": "x"}),
        replace(ASKED, secrets=[TOKEN] * 2),
    ]
    for asked in twice:
        with pytest.raises(BadInput, match="HF_TOKEN is given twice"):
            submit(watched, asked)
    with pytest.raises(BadInput, match="at most 20 variables from Secrets"):
        submit(watched, replace(ASKED, secrets=[TOKEN] * 21))
    bad = {**PRIVATE, "secret": "Git Read"}
    with pytest.raises(BadInput, match="no name of a Secret") as refused:
        submit(watched, replace(FETCHES, repository=bad))
    [problem] = getattr(refused.value, "problems", [refused.value])
    assert problem.field == "git_secret"
    sent = {**body(watched, FETCHES), "repository": bad}
    answer = Caller(watched.ada).post("runs/", sent, key="bad").json()
    assert [one["pointer"] for one in answer["errors"]] == ["/repository/secret"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            'secret "huggingface" not found',
            "The Secret huggingface, which it takes a value from, is not in its namespace.",
        ),
        (
            "couldn't find key token in Secret qm-vision/huggingface",
            "The Secret huggingface, which it takes a value from, has no key token.",
        ),
    ],
)
def test_what_a_secret_lacks_is_told_in_a_sentence(message: str, words: str) -> None:
    found = stuck("CreateContainerConfigError", message)
    assert (found.code, found.what, found.outlook) == (
        "secret_not_there",
        words,
        Outlook.CHANGE,
    )
    assert found.step is not None
    assert found.step.action is Action.CHANGE_RUN


@pytest.mark.slow
def test_a_run_without_its_secret_says_so_and_starts_once_it_is_there(
    watched: Watched,
) -> None:
    run = submit(watched, ASKS)
    sentence = (
        "The Secret huggingface, which it takes a value from, is not in its namespace."
    )
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "starting")

        def is_told() -> bool:
            return sentence in page(client(watched.ada).get(f"/runs/{run.pk}")).words

        wait_until(is_told, what="the page to name the Secret")
        follow(run)
        assert run.held_up == sentence
        make_secret(watched, "huggingface", token="hf_x")
        until(run, "running")
    assert run.held_up == ""
    # Copies of the cluster's objects hold no variable, wherever its value comes from.
    copies = str([*ClusterObject.objects.values_list("body", flat=True)])
    assert run.name in copies
    assert "HF_TOKEN" not in copies


def test_a_private_source_is_fetched_with_the_secret_of_its_name(
    watched: Watched,
) -> None:
    make_secret(watched, "git-read", username="ada", password="hunter2")
    run = submit(watched, FETCHES)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        look_after(run)
        until(run, "running")
    assert run.held_up == ""


def test_the_form_takes_secrets_and_fills_them_in_again(watched: Watched) -> None:
    ada, where = client(watched.ada), address(watched)
    secrets = "HF_TOKEN=huggingface:token\nWANDB_API_KEY=wandb:key"
    typed = filled(
        ada.get(where),
        script_text="",
        git_url=URL,
        git_secret="git-read",
        secrets=secrets,
    )
    sent = ada.post(where, typed)
    run = Run.objects.get()
    assert sent["Location"] == f"/runs/{run.pk}"
    assert run.submission["secrets"] == [
        TOKEN,
        {"variable": "WANDB_API_KEY", "secret": "wandb", "key": "key"},
    ]
    assert run.submission["repository"]["secret"] == "git-read"
    again = form(ada.get(address(watched, again=str(run.pk))))
    assert again["secrets"].replace("\r", "").strip() == secrets
    assert again["git_secret"] == "git-read"
    words = page(ada.get(f"/runs/{run.pk}")).words
    assert "HF_TOKEN from huggingface" in words


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"secrets": "HF_TOKEN=huggingface"}, "is not of the form NAME=secret:key"),
        ({"git_secret": "git-read"}, "Give the address that its Secret is for."),
    ],
)
def test_the_form_says_how_secrets_are_written(
    watched: Watched, typed: dict[str, str], words: str
) -> None:
    ada, where = client(watched.ada), address(watched)
    answer = ada.post(where, filled(ada.get(where), **typed))
    assert answer.status_code == 422
    assert words in page(answer).words


def test_the_api_takes_them_and_says_what_changes(watched: Watched) -> None:
    caller = Caller(watched.ada)
    sent = {**body(watched, FETCHES), "secrets": [TOKEN]}
    made = caller.post("runs/", sent, key="mine")
    assert made.status_code == 201, made.content
    found = made.json()
    assert found["submission"]["secrets"] == [TOKEN]
    assert found["submission"]["repository"] == PRIVATE
    other = {**TOKEN, "secret": "ours"}
    changes = {"secrets": [other], "repository": {**PRIVATE, "secret": "other"}}
    preview = caller.post(f"runs/{found['id']}/again/preview/", changes).json()
    told = {
        one["field"]: (one["before"], one["after"]) for one in preview["differences"]
    }
    assert told == {
        "secrets": ("HF_TOKEN=huggingface:token", "HF_TOKEN=ours:token"),
        "repository": (f"{URL} at main by git-read", f"{URL} at main by other"),
    }
    unknown = caller.post("runs/", {**sent, "secrets": [{**TOKEN, "value": "x"}]})
    assert "value" in unknown.json()["errors"][0]["pointer"]


def test_a_run_is_submitted_again_with_its_secrets(watched: Watched) -> None:
    run = submit(watched, ASKS)
    again = actions.submit_again(run, by=watched.ada, key="again", now=timezone.now())
    assert again.submission == run.submission
    assert "huggingface" in str(again.manifests)
