"""Every template: its golden file, the schema of its kind, and what all manifests of runs have in common."""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from provisioning.desired.first_job import as_yaml
from sandbox.kubernetes import schema
from sandbox.kubernetes.kinds import by_kind
from sandbox.kubernetes.validation import create_causes
from tests.workloads.runs import A100, IDS, SOURCE, WHERE, run
from workloads.templates.kubeflow import runtime
from workloads.templates.library import (
    BY_SLUG,
    TEMPLATES,
    VOLCANO,
    Abilities,
    Template,
    lacking,
)
from workloads.templates.parameters import Type
from workloads.templates.run import name_of

GOLDEN = Path(__file__).parent / "golden"
CRDS = Path(os.environ.get("QM_SHARED", Path(__file__).parents[3] / "shared")) / "crds"
every_template = pytest.mark.parametrize("template", TEMPLATES, ids=IDS)
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"


def main(template: Template) -> dict[str, Any]:
    """The object that is the run itself; what it needs comes before it."""
    return template.render(run(template))[-1]


def pods(found: Any) -> Iterator[dict[str, Any]]:
    """The specification of every pod in a manifest."""
    if isinstance(found, dict):
        if "containers" in found:
            yield found
        for value in found.values():
            yield from pods(value)
    elif isinstance(found, list):
        for value in found:
            yield from pods(value)


@every_template
def test_a_template_renders_its_golden_file(template: Template) -> None:
    text = "---\n".join(
        as_yaml(manifest) for manifest in template.render(run(template))
    )
    path = GOLDEN / f"{template.slug}.yaml"
    if os.environ.get("QM_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_there_is_a_golden_file_for_each_template_and_no_other() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(IDS)


@every_template
def test_rendering_twice_gives_the_same(template: Template) -> None:
    assert template.render(run(template)) == template.render(run(template))


@every_template
def test_no_container_may_take_more_than_it_asks_for(template: Template) -> None:
    found = [
        each
        for pod in pods(main(template))
        for each in [*pod["containers"], *pod.get("initContainers", ())]
    ]
    resources = [each["resources"] for each in found] or [
        main(template)["spec"]["trainer"]["resourcesPerNode"]
    ]
    assert all(each["requests"] == each["limits"] for each in resources)
    assert all({"cpu", "memory"} <= each["requests"].keys() for each in resources)
    assert any(each["requests"].get("nvidia.com/gpu") == "8" for each in resources)


@every_template
def test_it_stands_in_the_teams_queue_with_its_priority_and_bears_its_costs(
    template: Template,
) -> None:
    labels = main(template)["metadata"]["labels"]
    queued = template.queueing != VOLCANO
    assert (labels.get(QUEUE), labels.get(PRIORITY)) == (
        ("default", "scheduled-training") if queued else (None, None)
    )
    assert (labels["team"], labels["cost-center"], labels["quartermaster.io/run"]) == (
        "nlp",
        "cc-1001",
        f"{template.slug}-0a1b2c3d",
    )
    for pod in [*main(template)["spec"].get("tasks", ())]:
        assert pod["template"]["metadata"]["labels"]["cost-center"] == "cc-1001"


@every_template
def test_it_bears_no_label_by_which_the_portal_knows_its_own_objects(
    template: Template,
) -> None:
    text = str(template.render(run(template)))
    assert "quartermaster.io/tenancy" not in text
    assert "app.kubernetes.io/managed-by" not in text


@every_template
def test_its_pods_reach_the_nodes_of_the_flavor_and_get_no_token(
    template: Template,
) -> None:
    manifest = (
        runtime(A100, image="x:1") if template.slug == "trainjob" else main(template)
    )
    found = list(pods(manifest))
    assert found
    for pod in found:
        assert pod["nodeSelector"] == {"accelerator": "nvidia-a100"}
        assert pod["tolerations"] == [
            {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
        ]
        assert (
            template.slug == "trainjob" or pod["automountServiceAccountToken"] is False
        )


@every_template
def test_it_waits_for_its_queue_has_a_time_limit_and_stops_gracefully(
    template: Template,
) -> None:
    spec = main(template)["spec"]
    text = str(spec)
    if template.slug not in ("volcano", "serving"):
        assert spec.get("suspend", spec.get("runPolicy", {}).get("suspend")) is True
    if template.slug != "serving":
        assert "'activeDeadlineSeconds': 5400" in text
    if template.slug not in ("trainjob",):
        assert all(pod["terminationGracePeriodSeconds"] == 120 for pod in pods(spec))
    if template.slug not in ("trainjob", "serving"):
        assert "'ttlSecondsAfterFinished': 604800" in text


@every_template
def test_what_people_write_stays_text(template: Template) -> None:
    """Neither YAML nor a variable of Kubernetes is read from a parameter."""
    if not any(one.type == Type.WORDS for one in template.parameters):
        return
    text = "---\n".join(as_yaml(each) for each in template.render(run(template)))
    [found] = [
        each
        for each in yaml.safe_load_all(text)
        if each["metadata"]["name"] == f"{template.slug}-0a1b2c3d"
    ]
    words = [each["command"] for pod in pods(found) for each in pod["containers"]]
    words = words or [found["spec"]["trainer"]["command"]]
    assert any(
        command[-3:] == ["train.py", "--name=$$(HOME)", "key: [yaml]"]
        for command in words
    )


@every_template
def test_builtin_kinds_fit_the_schema_of_the_api_server(template: Template) -> None:
    for manifest in template.render(run(template)):
        kind = by_kind(manifest["apiVersion"], manifest["kind"])
        if kind is not None:
            assert [str(error) for error in schema.errors(kind, manifest)] == []
            assert schema.strict_unknown_fields(kind, manifest) == []
            assert create_causes(kind, manifest) == []


@every_template
def test_other_kinds_fit_the_definitions_that_their_projects_ship(
    template: Template,
) -> None:
    if template.kind.endswith("batch/v1"):
        return
    manifests = template.render(run(template))[-1:]
    if template.slug == "trainjob":
        manifests.append(runtime(A100, image="registry.example.com/torch:1"))
    for manifest in manifests:
        assert [
            error.message
            for error in definition(manifest).iter_errors(manifest | {"metadata": {}})
        ] == []


def test_the_definitions_would_refuse_an_unknown_field() -> None:
    manifest = main(BY_SLUG["pytorch"])
    manifest["spec"]["suspended"] = True
    errors = [
        error.message
        for error in definition(manifest).iter_errors(manifest | {"metadata": {}})
    ]
    assert "'suspended' was unexpected" in str(errors)


def definition(manifest: dict[str, Any]) -> Draft202012Validator:
    """The schema that a project ships for a kind, with every field that it does not name refused."""
    if not CRDS.is_dir():
        pytest.skip("the definitions of these kinds are not on this machine")
    return shipped(manifest["apiVersion"], manifest["kind"])


@cache
def shipped(api_version: str, kind: str) -> Draft202012Validator:
    group, _, version = api_version.partition("/")
    path = CRDS / f"{group}_{kind.lower()}s.yaml"
    found = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    [served] = [each for each in found["spec"]["versions"] if each["name"] == version]
    return Draft202012Validator(closed(served["schema"]["openAPIV3Schema"]))


def closed(found: Any) -> Any:
    if isinstance(found, list):
        return [closed(each) for each in found]
    if not isinstance(found, dict):
        return found
    shut = {name: closed(value) for name, value in found.items()}
    if isinstance(shut.get("properties"), dict) and not shut.get(
        "x-kubernetes-preserve-unknown-fields"
    ):
        shut.setdefault("additionalProperties", False)
    return shut


def test_source_from_git_is_fetched_without_being_part_of_the_shells_text() -> None:
    template = BY_SLUG["single-node"]
    made = replace(run(template), script=None, repository=SOURCE)
    [job] = template.render(made)
    [fetch] = job["spec"]["template"]["spec"]["initContainers"]
    assert fetch["command"][-2:] == ["https://git.example.com/nlp/train.git", "v1.2"]
    assert "example.com" not in fetch["command"][2]
    assert (
        job["spec"]["template"]["spec"]["containers"][0]["workingDir"] == "/opt/source"
    )


def test_a_trainjob_takes_no_files() -> None:
    template = BY_SLUG["trainjob"]
    misfit = template.refused(replace(run(template), repository=SOURCE))
    assert misfit is not None
    assert misfit.field == "repository"
    assert "takes its program and data from the image" in misfit.text


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"repository": SOURCE}, "script", "not both"),
        ({"claims": ()}, "checkpoint", "would be lost"),
        ({"checkpoint": "/data"}, "checkpoint", "would be lost"),
        ({"variables": {"LD_PRELOAD": "x"}}, "variables", "LD_PRELOAD"),
        (
            {"launcher": "torchrun", "program": ("python3", "train.py")},
            "program",
            "leave python3 out",
        ),
        (
            {"launcher": "torchrun", "program": ("/opt/venv/bin/python3.11", "a.py")},
            "program",
            "leave /opt/venv/bin/python3.11 out",
        ),
        (
            {"launcher": "torchrun", "program": ("bash", "-c", "train")},
            "program",
            "and bash is none: begin with the script, such as train.py, or choose the launcher none",
        ),
        (
            {"launcher": "torchrun", "program": ("/bin/sh", "run.sh")},
            "program",
            "and /bin/sh is none: begin with the script",
        ),
        (
            {"launcher": "torchrun", "program": ("./run.sh",)},
            "program",
            "choose the launcher none and write bash ./run.sh.",
        ),
    ],
)
def test_what_goes_with_no_template_is_refused_with_a_sentence(
    change: dict[str, Any], field: str, words: str
) -> None:
    template = BY_SLUG["single-node"]
    misfit = template.refused(replace(run(template), **change))
    assert misfit is not None
    assert misfit.field == field
    assert words in misfit.text


def test_what_goes_with_a_template_is_not_refused() -> None:
    template = BY_SLUG["single-node"]
    made = run(template)
    assert template.refused(replace(made, checkpoint="", claims=())) is None
    for program in (
        ("python3", "train.py"),
        ("bash", "-c", "train"),
        ("./run.sh",),
    ):
        as_it_is = replace(made, launcher="none", program=program)
        assert template.refused(as_it_is) is None
    # What only has such a name in it is a script.
    launched = replace(made, launcher="torchrun", program=("python_train.py", "bash"))
    assert template.refused(launched) is None


def test_a_gang_that_loses_a_node_starts_anew_as_a_whole() -> None:
    spec = main(BY_SLUG["pytorch"])["spec"]
    [job] = spec["replicatedJobs"]
    assert [
        rule["action"] for rule in job["template"]["spec"]["podFailurePolicy"]["rules"]
    ] == ["FailJob"]
    # Not one that has reached its time limit, which would begin anew with it.
    assert [rule["action"] for rule in spec["failurePolicy"]["rules"]] == [
        "FailJobSet",
        "RestartJobSetAndIgnoreMaxRestarts",
    ]


def test_a_program_with_a_launcher_of_its_own_runs_as_it_was_given() -> None:
    template = BY_SLUG["pytorch"]
    spec = template.render(
        replace(run(template), launcher="none", program=("accelerate", "launch"))
    )[-1]["spec"]
    [container] = next(pods(spec))["containers"]
    assert container["command"] == ["accelerate", "launch"]
    assert {"MASTER_ADDR", "MASTER_PORT", "NNODES"} <= {
        each["name"] for each in container["env"]
    }


@pytest.mark.parametrize("slug", ["pytorch", "volcano"])
def test_where_the_pods_meet_is_not_for_a_run_to_set(slug: str) -> None:
    template = BY_SLUG[slug]
    taken = replace(run(template), variables={"SEED": "1", "MASTER_ADDR": "10.0.0.7"})
    assert template.refused(taken) == (
        "variables",
        "MASTER_ADDR is set by the template: the pods of a run find each other by it.",
    )
    alone = BY_SLUG["single-node"]
    assert alone.refused(replace(run(alone), variables={"MASTER_ADDR": "::1"})) is None


def test_a_runtime_without_a_flavor_goes_anywhere() -> None:
    assert runtime(None, image="x:1")["metadata"]["name"] == "qm-torch"
    assert "nodeSelector" not in str(runtime(None, image="x:1"))


def test_without_a_flavor_nothing_says_where_it_runs() -> None:
    template = BY_SLUG["single-node"]
    made = replace(run(template), where=replace(WHERE, kind=None))
    assert "nodeSelector" not in str(template.render(made))


def test_a_sweep_starts_with_fewer_trials_when_there_is_no_room_for_all() -> None:
    job = main(BY_SLUG["sweep"])
    assert job["metadata"]["annotations"] == {"kueue.x-k8s.io/job-min-parallelism": "1"}
    assert (job["spec"]["parallelism"], job["spec"]["completions"]) == (4, 10)


@every_template
def test_a_cluster_without_its_kind_or_integration_says_what_is_missing(
    template: Template,
) -> None:
    able = Abilities({template.kind}, {template.integration}, template.queueing)
    assert lacking(template, able) == ""
    assert "does not know" in lacking(template, replace(able, kinds=()))
    if template.integration:
        assert "does not look after" in lacking(
            template, replace(able, integrations=())
        )
    other = VOLCANO if template.queueing != VOLCANO else "kueue"
    assert "The queues of this cluster are" in lacking(
        template, replace(able, queueing=other)
    )


def test_names_are_the_same_for_the_same_submission_and_fit_every_kind() -> None:
    first = name_of("Fine-tune Llama 3 (8B) on très much data of ours", "nlp/17")
    assert first == name_of(
        "Fine-tune Llama 3 (8B) on très much data of ours", "nlp/17"
    )
    assert first != name_of(
        "Fine-tune Llama 3 (8B) on très much data of ours", "nlp/18"
    )
    assert len(first) <= 40
    assert name_of("8 × A100!", "x").startswith("a100-")
    assert name_of("日本", "x").startswith("run-")
