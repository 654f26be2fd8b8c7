"""Profiles as KubeSpawner's profile_list: out and in again without loss, also what only KubeSpawner has words for."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from notebooks.profiles.document import (
    Choice,
    DevContainer,
    Document,
    FreeChoice,
    Option,
    Volume,
    document_from,
    to_json,
)
from notebooks.profiles.kubespawner import (
    HAS_WORDS_FOR,
    LIST,
    document_of,
    in_order,
    profile_of,
    read_list,
    write_list,
)
from tests.notebooks.documents import a100, cpu
from web.documents import DocumentRefused

FOREIGN = """
profileList:
- display_name: Small Server
  description: |
    <b>Two</b> CPUs.
    And no GPU.
  kubespawner_override:
    cpu_limit: 2
    cpu_guarantee: 0.5
    mem_limit: 4G
    mem_guarantee: 512M
    environment: {WORKERS: 4}
    node_selector: {pool: cpu}
- slug: big
  display_name: Big
  default: true
  kubespawner_override:
    image: quay.io/jupyter/pytorch:2026
    cpu_limit: 16
    cpu_guarantee: 16
    mem_limit: 128G
    mem_guarantee: 128G
    extra_resource_limits: {nvidia.com/mig-1g.10gb: "2"}
    extra_resource_guarantees: {nvidia.com/mig-1g.10gb: "2"}
    volumes:
      shm: {name: shm, emptyDir: {medium: Memory}}
    volume_mounts:
      shm: {name: shm, mountPath: /dev/shm}
  profile_options:
    image:
      display_name: Image
      choices:
        one: {display_name: One, kubespawner_override: {image: "quay.io/jupyter/pytorch:2026"}}
      unlisted_choice:
        enabled: true
        display_name: Other
        display_name_in_choices: Other…
        validation_regex: ^quay.io/.+$
        validation_message: Ours only
        kubespawner_override: {image: "{value}"}
"""


def test_a_profile_is_what_kubespawner_takes_with_requests_as_limits() -> None:
    found = profile_of(a100())
    override = found["kubespawner_override"]
    assert (found["slug"], found["display_name"], found["default"]) == (
        "a100-1",
        "1 × A100",
        True,
    )
    assert (override["cpu_limit"], override["cpu_guarantee"]) == (8, 8)
    assert (override["mem_limit"], override["mem_guarantee"]) == ("64G", "64G")
    assert (
        override["extra_resource_limits"]
        == override["extra_resource_guarantees"]
        == {"nvidia.com/gpu": "1"}
    )
    assert override["environment"] == {"HF_HOME": "/data/hf"}
    assert override["start_timeout"] == 3600
    choices = found["profile_options"]["size"]["choices"]
    assert choices["two"]["kubespawner_override"]["extra_resource_limits"] == {
        "nvidia.com/gpu": "2"
    }
    assert found["profile_options"]["image"]["unlisted_choice"][
        "kubespawner_override"
    ] == {"image": "{value}"}


def test_a_list_of_another_hub_comes_in_and_goes_out_as_it_was() -> None:
    small, big = read_list(FOREIGN)
    assert (small.slug, small.cpus, small.overrides["cpu_guarantee"]) == (
        "small-server",
        None,
        0.5,
    )
    assert (big.cpus, big.memory, big.gpus, big.resource) == (
        16,
        128,
        2,
        "nvidia.com/mig-1g.10gb",
    )
    assert big.overrides["volumes"] == {
        "shm": {"name": "shm", "emptyDir": {"medium": "Memory"}}
    }
    assert big.options["image"].free == FreeChoice(
        title="Other",
        title_in_choices="Other…",
        pattern="^quay.io/.+$",
        message="Ours only",
        image="{value}",
    )
    told, given = (yaml.safe_load(text) for text in (write_list([small, big]), FOREIGN))
    for ours, theirs in zip(told[LIST], given["profileList"], strict=True):
        ours.pop("x-quartermaster", None)
        assert ours == {"slug": "small-server"} | theirs


def test_a_mapping_of_profiles_is_read_in_the_order_of_its_keys() -> None:
    found = read_list(
        "{b: {display_name: Second}, a: {display_name: First, slug: one}}"
    )
    assert [(one.slug, one.order) for one in found] == [("one", 10), ("second", 20)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[]", "profile_list"),
        ("x", "profile_list"),
        ("[1]", "0"),
        ("[{display_name: X, colour: red}]", "0.colour"),
        ("[{display_name: X, kubespawner_override: 1}]", "0.kubespawner_override"),
        (
            "[{display_name: X, x-quartermaster: {colour: red}}]",
            "0.x-quartermaster.colour",
        ),
        ("[{display_name: X, profile_options: {image: 1}}]", "0.profile_options.image"),
        (
            "[{display_name: X, profile_options: {i: {display_name: I, choices: {a: 1}}}}]",
            "0.profile_options.i.choices.a",
        ),
        (
            "[{display_name: X, profile_options: {i: {unlisted_choice: 1}}}]",
            "0.profile_options.i.unlisted_choice",
        ),
        ("[{display_name: X}, {display_name: X}]", ""),
        ("[{display_name: '!!'}]", "0.slug"),
    ],
)
def test_what_kubespawner_does_not_have_is_refused_at_its_place(
    text: str, place: str
) -> None:
    with pytest.raises(DocumentRefused) as raised:
        read_list(text)
    assert place in dict(raised.value.problems)


TITLES = st.text("abcdefghij KLMN0123×·", min_size=1, max_size=20).filter(
    lambda text: bool(text.strip())
)
KEYS = st.from_regex(r"[a-z]([a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
IMAGES = st.from_regex(r"registry\.example\.com/[a-z]{1,8}:[0-9]{1,3}", fullmatch=True)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9_999)
    | st.text("abcxyz {}", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=6,
)
# What a document has a word for is written with it.
OVERRIDES = st.dictionaries(
    KEYS.filter(lambda key: key not in HAS_WORDS_FOR), JSON, max_size=3
)
SETTINGS: dict[str, st.SearchStrategy[Any]] = {
    "image": st.just("") | IMAGES,
    "cpus": st.none() | st.sampled_from([0.25, 0.5, 1.0, 8.0, 12.125]),
    "memory": st.none() | st.integers(1, 4096),
    "gpus": st.none() | st.integers(0, 16),
    "variables": st.dictionaries(
        st.sampled_from(["A", "HF_HOME"]), st.text("ab ", max_size=5), max_size=2
    ),
    "volumes": st.lists(
        st.builds(
            Volume,
            name=KEYS,
            path=st.from_regex(r"/[a-z]{1,9}", fullmatch=True),
            read_only=st.booleans(),
        ),
        max_size=3,
        unique_by=lambda one: one.path,
    ).map(tuple),
    "overrides": OVERRIDES,
}
CHOICES = st.dictionaries(
    KEYS,
    st.builds(Choice, title=TITLES, default=st.booleans(), **SETTINGS),
    min_size=1,
    max_size=3,
)
FREE = st.builds(
    FreeChoice,
    title=TITLES,
    title_in_choices=st.just("") | TITLES,
    pattern=st.sampled_from(["", "^a$", "^registry/.+$"]),
    message=st.just("") | TITLES,
    **SETTINGS
    | {"image": st.sampled_from(["", "{value}", "registry.example.com/{value}"])},
)
NAMES = st.lists(KEYS, max_size=3, unique=True).map(tuple)
DOCUMENTS = st.builds(
    Document,
    slug=KEYS.filter(lambda key: key not in ("new", "import", "export", "yaml")),
    title=TITLES,
    help=st.just("") | TITLES,
    flavor=st.just("") | KEYS,
    resource=st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]),
    teams=NAMES,
    environments=st.sampled_from([(), ("dev",), ("test", "production")]),
    clusters=NAMES,
    order=st.integers(0, 9_999),
    default=st.booleans(),
    options=st.dictionaries(
        KEYS.filter(lambda key: key != "profile"),
        st.builds(Option, title=TITLES, choices=CHOICES, free=st.none() | FREE),
        max_size=2,
    ),
    devcontainer=st.builds(
        DevContainer,
        post_create=st.sampled_from(["", "pip install x"]),
        extensions=st.just(("a.b",)),
    ),
    **SETTINGS,
)


@pytest.mark.slow
@given(DOCUMENTS)
def test_every_document_comes_back_from_kubespawner_as_it_was(
    document: Document,
) -> None:
    whole = document_from(to_json(document))
    assert document_of(profile_of(whole)) == whole


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(DOCUMENTS, min_size=1, max_size=4, unique_by=lambda one: one.slug))
def test_every_file_comes_back_as_it_was(documents: list[Document]) -> None:
    text = write_list([document_from(to_json(one)) for one in documents])
    found = read_list(text)
    assert found == in_order([document_from(to_json(one)) for one in documents])
    assert write_list(found) == text


PROFILES = st.fixed_dictionaries(
    {
        "slug": KEYS.filter(lambda key: key not in ("new", "import", "export", "yaml")),
        "display_name": TITLES,
    },
    optional={
        "description": TITLES,
        "default": st.just(True),
        "kubespawner_override": st.dictionaries(
            st.sampled_from([*HAS_WORDS_FOR, "node_selector", "start_timeout"]),
            JSON,
            min_size=1,
            max_size=4,
        ),
    },
)


@pytest.mark.slow
@given(PROFILES)
def test_whatever_another_hub_overrides_goes_out_as_it_came_in(
    profile: dict[str, Any],
) -> None:
    assert profile_of(document_of(profile)) == profile


def test_a_profile_without_gpus_says_nothing_of_them() -> None:
    assert "extra_resource_limits" not in profile_of(cpu())["kubespawner_override"]
