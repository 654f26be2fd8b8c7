"""Templates that a platform team writes: what a document may say, what it becomes, and what is refused at its place."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.runs import SCRIPT, WHERE
from web.documents import DocumentRefused
from workloads.runs.planning.plan import Place, Submission, plan
from workloads.runs.planning.pools import Pool, fitting
from workloads.templates.document import (
    document_from,
    document_of,
    read,
    template_of,
    to_json,
    write,
)
from workloads.templates.library import BY_SLUG, TEMPLATES, Abilities, Template
from workloads.templates.parameters import Type, check

OWN_TEXT = {"type": "text", "title": "T", "variable": "T"}
VISION = """
slug: vision
title: Fine-tune a vision model
help: Our recipe on one node.
shape: single-node
images: [registry.example.com/vision:3, registry.example.com/vision:2]
parameters:
  program: {default: [train.py, --config, vit.yaml], fixed: true}
  gpus: {default: 2, maximum: 4}
  minutes: {default: 480, maximum: 2880}
  checkpoint: {default: /data/checkpoints}
  rate: {type: text, title: Learning rate, help: Of the optimizer., default: "0.001", variable: LEARNING_RATE}
  epochs: {type: count, title: Epochs, minimum: 1, maximum: 90, default: 10, variable: EPOCHS}
  mixed: {type: flag, title: Mixed precision, default: true, variable: MIXED}
variables: {HF_HOME: /data/hub}
claims: [{name: datasets, path: /data}]
repository: {url: "https://git.example.com/vision/recipes.git", revision: v3}
priority: production
gpu_memory: 40
"""


def refused(**said: Any) -> dict[str, str]:
    """What is wrong with a document, by place; it is right but for what is said."""
    whole = {"slug": "x1", "title": "X", "help": "X.", "shape": "single-node"} | said
    with pytest.raises(DocumentRefused) as raised:
        document_from(whole)
    return dict(raised.value.problems)


def vision(**changes: Any) -> Template:
    """The template of the document above."""
    return template_of(document_from(to_json(read(VISION)) | changes), version=3)


def pool(name: str, *, memory: int = 80, is_spot: bool = False) -> Pool:
    """GPUs that the team holds."""
    kind = replace(WHERE.kind, name=name) if WHERE.kind else None
    assert kind is not None
    return Pool(
        kind=kind,
        product=name.upper(),
        gpus=8,
        borrow=0,
        per_node=8,
        usd_per_hour=Decimal(3),
        memory=memory,
        is_spot=is_spot,
    )


def place(template: Template, *pools: Pool, images: tuple[str, ...] = ()) -> Place:
    """A namespace where the template is offered."""
    return Place(
        cluster="Training",
        where=WHERE,
        pools={one.kind.name: one for one in pools},
        priorities=("production", "scheduled-training", "exploratory"),
        abilities=Abilities(frozenset({template.kind})),
        images=images,
        templates={template.slug: template},
    )


def test_the_document_becomes_what_a_form_asks() -> None:
    template = vision()
    by_name = {one.name: one for one in template.parameters}
    assert (template.slug, template.shape, template.version) == (
        "vision",
        "single-node",
        3,
    )
    assert by_name["image"].type is Type.CHOICE
    assert by_name["image"].default == "registry.example.com/vision:3"
    assert (
        by_name["gpus"].default,
        by_name["gpus"].minimum,
        by_name["gpus"].maximum,
    ) == (2, 0, 4)
    assert by_name["program"].is_fixed
    assert (
        by_name["memory"]
        == {one.name: one for one in BY_SLUG["single-node"].parameters}["memory"]
    )
    assert [one.name for one in template.parameters][-3:] == ["rate", "epochs", "mixed"]


def test_a_run_has_what_the_template_brings_and_may_say_otherwise() -> None:
    template = vision()
    asked = Submission(
        template="vision",
        title="Try",
        flavor="a100",
        values={"rate": "0.1", "mixed": False},
    )
    found = plan(asked, place(template, pool("a100")), key="1")
    assert not found.problems
    assert (found.template_version, found.gpus) == (3, 2)
    [job] = found.manifests
    spec = job["spec"]["template"]["spec"]
    [container] = spec["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert container["image"] == "registry.example.com/vision:3"
    assert container["command"][-3:] == ["train.py", "--config", "vit.yaml"]
    assert {
        name: variables[name]
        for name in ("LEARNING_RATE", "EPOCHS", "MIXED", "HF_HOME")
    } == {
        "LEARNING_RATE": "0.1",
        "EPOCHS": "10",
        "MIXED": "false",
        "HF_HOME": "/data/hub",
    }
    assert variables["QM_CHECKPOINTS"] == f"/data/checkpoints/{found.name}"
    assert spec["initContainers"][0]["command"][-2:] == [
        "https://git.example.com/vision/recipes.git",
        "v3",
    ]
    assert {
        "name": "claim-0",
        "persistentVolumeClaim": {"claimName": "datasets"},
    } in spec["volumes"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "production"
    own = Submission(
        template="vision",
        title="Try",
        flavor="a100",
        script={"file": SCRIPT.file, "text": SCRIPT.text},
        claims=[{"name": "mine", "path": "/data/", "read_only": False}],
        variables={"HF_HOME": "/data/other"},
        priority="exploratory",
    )
    config, job = plan(own, place(template, pool("a100")), key="1").manifests
    spec = job["spec"]["template"]["spec"]
    assert config["kind"] == "ConfigMap"
    assert "initContainers" not in spec
    claims = [
        each["persistentVolumeClaim"]
        for each in spec["volumes"]
        if "persistentVolumeClaim" in each
    ]
    assert claims == [{"claimName": "mine"}]
    assert {"name": "HF_HOME", "value": "/data/other"} in spec["containers"][0]["env"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "exploratory"


@pytest.mark.parametrize(
    ("values", "field", "says"),
    [
        (
            {"program": ("rm", "-rf")},
            "program",
            "Program is set by the template: train.py --config vit.yaml.",
        ),
        (
            {"image": "registry.example.com/other:1"},
            "image",
            "Image is one of: registry.example.com/vision:3",
        ),
        ({"gpus": 5}, "gpus", "from 0 to 4"),
        ({"epochs": 91}, "epochs", "Epochs is from 1 to 90."),
        ({"rate": "a\nb"}, "rate", "one line"),
    ],
)
def test_a_run_keeps_to_what_the_template_allows(
    values: dict[str, object], field: str, says: str
) -> None:
    asked = Submission(template="vision", title="Try", flavor="a100", values=values)
    [problem] = plan(asked, place(vision(), pool("a100")), key="1").problems
    assert problem.field == field
    assert says in problem.text


def test_an_image_of_the_template_has_to_be_on_the_list_of_images_too() -> None:
    asked = Submission(template="vision", title="Try", flavor="a100")
    where = place(vision(), pool("a100"), images=("registry.example.com/safe/",))
    [problem] = plan(asked, where, key="1").problems
    assert (problem.field, problem.code) == ("image", "image_not_allowed")


def test_the_memory_that_it_needs_chooses_a_slice_or_a_whole_gpu() -> None:
    pools = [
        pool("slice", memory=10),
        pool("h100", memory=94),
        pool("a100", memory=80),
        pool("half", memory=40),
    ]
    held = {one.kind.name: one for one in pools}
    assert fitting(held, vision()) == "half"
    assert fitting(held, vision(gpu_memory=41)) == "a100"
    assert fitting(held, vision(gpu_memory=95)) == ""
    assert fitting(held, vision(gpu_memory=0)) == "slice"
    asked = Submission(template="vision", title="Try", flavor="slice")
    [problem] = plan(asked, place(vision(), *pools), key="1").problems
    assert problem.text == (
        "Fine-tune a vision model needs 40 GB of memory on a GPU, and SLICE has 10. Take half: HALF with 40 GB."
    )


def test_spot_or_not_is_the_templates_word() -> None:
    spot, firm = pool("spot", is_spot=True), pool("firm")
    held = {"firm": firm, "spot": spot}
    assert fitting(held, vision(capacity="spot")) == "spot"
    assert fitting({"spot": spot, "firm": firm}, vision(capacity="on_demand")) == "firm"
    for capacity, flavor, says in (
        ("spot", "firm", "spot GPUs only"),
        ("on_demand", "spot", "never runs on spot"),
    ):
        asked = Submission(template="vision", title="Try", flavor=flavor)
        [problem] = plan(
            asked, place(vision(capacity=capacity), spot, firm), key="1"
        ).problems
        assert says in problem.text


def test_a_kind_that_is_lacking_is_told_apart_from_the_same_on_demand() -> None:
    held = replace(pool("a100", is_spot=True), gpus=2), pool("firm")
    asked = Submission(
        template="vision", title="Try", flavor="a100", values={"gpus": 4}
    )
    said = " ".join(
        one.text for one in plan(asked, place(vision(), *held), key="1").problems
    )
    assert "It takes 4 × A100 (spot)." in said


@pytest.mark.parametrize("template", TEMPLATES, ids=[one.slug for one in TEMPLATES])
def test_a_shipped_template_is_a_document_to_begin_from(template: Template) -> None:
    text = write(document_of(template))
    found = template_of(read(text), version=1)
    assert found.parameters == template.parameters
    assert (found.title, found.help, found.kind, found.render) == (
        template.title,
        template.help,
        template.kind,
        template.render,
    )


def test_writing_and_reading_loses_nothing() -> None:
    document = read(VISION)
    assert read(write(document)) == document
    assert document_from(to_json(document)) == document


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ({"slug": "Vision"}, "slug"),
        ({"slug": "pytorch"}, "slug"),
        ({"title": " "}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"help": "x" * 301}, "help"),
        ({"shape": "cronjob"}, "shape"),
        ({"size": 3}, "size"),
        ({"images": ["UPPER:1"]}, "images.0"),
        ({"images": ["a:1", "a:1"]}, "images"),
        (
            {"images": ["a:1"], "parameters": {"image": {"default": "b:1"}}},
            "parameters.image.default",
        ),
        ({"parameters": {"gpus": {"maximum": 17}}}, "parameters.gpus.maximum"),
        (
            {"parameters": {"gpus": {"minimum": 3, "maximum": 2}}},
            "parameters.gpus.maximum",
        ),
        ({"parameters": {"gpus": {"default": 17}}}, "parameters.gpus.default"),
        ({"parameters": {"gpus": {"default": 1.5}}}, "parameters.gpus.default"),
        ({"parameters": {"gpus": {"default": True}}}, "parameters.gpus.default"),
        ({"parameters": {"gpus": {"type": "text"}}}, "parameters.gpus"),
        (
            {"parameters": {"launcher": {"choices": ["mpirun"]}}},
            "parameters.launcher.choices",
        ),
        ({"parameters": {"image": {"needed": False}}}, "parameters.image.needed"),
        ({"parameters": {"image": {"fixed": True}}}, "parameters.image.fixed"),
        ({"parameters": {"epochs": {"default": 3}}}, "parameters.epochs.type"),
        ({"parameters": {"claims": OWN_TEXT}}, "parameters.claims"),
        (
            {"parameters": {"e": {"type": "text", "title": "T"}}},
            "parameters.e.variable",
        ),
        (
            {
                "parameters": {
                    "e": {"type": "text", "title": "T", "variable": "LD_PRELOAD"}
                }
            },
            "parameters.e.variable",
        ),
        (
            {"parameters": {"e": OWN_TEXT}, "variables": {"T": "1"}},
            "parameters.e.variable",
        ),
        ({"parameters": {"e": OWN_TEXT | {"type": "choice"}}}, "parameters.e.choices"),
        ({"parameters": {"e": OWN_TEXT | {"type": "image"}}}, "parameters.e.type"),
        ({"variables": {"PATH": "/x"}}, "variables"),
        ({"variables": {"A": True}}, "variables.A"),
        ({"claims": [{"name": "UPPER", "path": "/data"}]}, "claims.0.name"),
        ({"claims": [{"name": "data", "path": "data"}]}, "claims.0.path"),
        (
            {"repository": {"url": "https://169.254.169.254/x", "revision": "main"}},
            "repository",
        ),
        (
            {"repository": {"url": "https://localhost/x", "revision": "main"}},
            "repository",
        ),
        ({"shape": "nccl", "claims": [{"name": "data", "path": "/data"}]}, "claims"),
        ({"gpu_memory": -1}, "gpu_memory"),
        ({"capacity": "cheap"}, "capacity"),
    ],
)
def test_what_no_template_can_mean_is_refused_at_its_place(
    said: dict[str, Any], at: str
) -> None:
    found = refused(**said)
    assert at in found, found
    assert all(text.endswith(".") for text in found.values())


def test_a_value_of_the_wrong_kind_hides_no_other_place() -> None:
    found = refused(
        foo=1,
        title="",
        parameters={
            "gpus": {"maximum": 99_999, "bar": 1},
            "minutes": {"maximum": [], "default": -1},
        },
        claims=[{"name": "UPPER"}],
        gpu_memory=-1,
    )
    assert {*found} == {
        "foo",
        "title",
        "parameters.gpus.bar",
        "parameters.gpus.maximum",
        "parameters.minutes.maximum",
        "claims.0.path",
        "gpu_memory",
    }
    assert {*refused(slug=1, shape=2, help="")} == {"slug", "shape", "help"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=8), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_whatever_stands_there_is_taken_or_refused_in_words(said: Any) -> None:
    for name in (
        "parameters",
        "images",
        "variables",
        "claims",
        "repository",
        "gpu_memory",
    ):
        whole = {
            "slug": "x1",
            "title": "X",
            "help": "X.",
            "shape": "single-node",
            name: said,
        }
        words: tuple[tuple[str, str], ...] = ()
        try:
            check(template_of(document_from(whole), version=1).parameters, {})
        except DocumentRefused as problems:
            words = problems.problems
        assert all(text.endswith(".") for _, text in words)
