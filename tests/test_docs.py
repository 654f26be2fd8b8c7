"""The documents say what is so: links, commands, variables, addresses, pictures and tests that they name exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from policy.rules import WORDS
from portal.env import Environment
from scripts import reference
from scripts.packages import ROOT
from tests.described import description

DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "integrations").glob("*/README.md"),
    ],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
WRITTEN_BY_HAND = [path for path in DOCUMENTS if path.name not in reference.PAGES]
IMAGES = sorted(path for path in (ROOT / "docs" / "images").iterdir())
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
MAKE = re.compile(r"(?:^|&& |\$ )make ([a-z][a-z-]*)", re.MULTILINE)
VARIABLE = re.compile(r"(?<!\$)\bQM_[A-Z][A-Z_]*[A-Z]\b")
CURL = re.compile(
    r"^ *(?:[A-Z]+=\$\()?curl (.*?)(?=\n *\S*curl |\n *[A-Z]+=|\Z)",
    re.DOTALL | re.MULTILINE,
)
ADDRESS = re.compile(r"(?:\$URL|https?://[^/\s]+/api/v1)(/[^\s\"'|]*)")
LARGEST_IMAGE = 180_000
# Read by the client, by Compose, or by the settings before they read anything else.
OTHER_VARIABLES = {
    "QM_URL",
    "QM_TOKEN",
    "QM_LISTEN",
    "QM_KUBECONFIGS",
    "QM_GIT_CREDENTIALS",
    "QM_HUB_CREDENTIALS",
    "QM_SECRETS_DIR",
    # Of a run's program.
    "QM_CHECKPOINTS",
    "QM_CHECKPOINT_MINUTES",
    "QM_RESUME_FROM",
}
named = pytest.mark.parametrize(
    "path", WRITTEN_BY_HAND, ids=lambda path: path.relative_to(ROOT).as_posix()
)


@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_every_link_leads_somewhere(path: Path) -> None:
    targets = [
        link.partition("#")[0]
        for link in LINK.findall(path.read_text())
        if "://" not in link
    ]

    assert [
        target for target in targets if target and not (path.parent / target).exists()
    ] == []


@named
def test_every_make_target_exists(path: Path) -> None:
    known = set(
        re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )

    assert {
        target for command in commands(path) for target in MAKE.findall(command)
    } - known == set()


@named
def test_every_variable_is_a_setting(path: Path) -> None:
    known = {
        f"QM_{name.upper()}" for name in Environment.model_fields
    } | OTHER_VARIABLES

    assert set(VARIABLE.findall(path.read_text())) - known == set()


def test_every_setting_is_in_the_reference() -> None:
    written = (reference.FOLDER / "settings.md").read_text()

    assert [
        name
        for name in Environment.model_fields
        if f"`QM_{name.upper()}`" not in written
    ] == []


@named
def test_every_curl_calls_an_address_of_the_api(path: Path) -> None:
    assert [
        call
        for call in calls(path)
        if not is_described(*call, described=description()["paths"])
    ] == []


def test_every_rule_is_in_the_reference() -> None:
    """Those of what is made in Azure, and of a cost centre that nobody confirmed, hold for few asks."""
    assert {rule.code for rule in reference.sample_rules()} == set(WORDS)
    written = (reference.FOLDER / "policy.md").read_text()
    assert [code for code in WORDS if f"| `{code}` |" not in written] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(reference.PAGES))
def test_the_reference_is_what_the_code_says(name: str) -> None:
    assert (reference.FOLDER / name).read_text() == reference.PAGES[name](), (
        "Run make reference."
    )


def test_every_test_that_the_threat_model_names_exists() -> None:
    rows = [
        line
        for line in (ROOT / "docs/threat-model.md").read_text().splitlines()
        if "`tests/" in line
    ]
    proofs = [proof for row in rows for proof in proofs_in(row)]

    assert len(proofs) >= len(rows)
    assert [(test, file) for test, file in proofs if not is_defined(test, file)] == []


@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.name)
def test_every_picture_is_small_and_shown(image: Path) -> None:
    shown = {
        (path.parent / link).resolve()
        for path in DOCUMENTS
        for link in LINK.findall(path.read_text())
    }

    assert image.stat().st_size <= LARGEST_IMAGE
    assert image in shown


def commands(path: Path) -> Iterator[str]:
    """What stands in code, in a block of its own or in a sentence."""
    text = path.read_text()
    yield from (body for _, body in FENCE.findall(text))
    yield from CODE.findall(FENCE.sub("", text))


def calls(path: Path) -> Iterator[tuple[str, str]]:
    """(method, path) of every curl in a block that names an address of version 1."""
    for language, body in FENCE.findall(path.read_text()):
        plain = re.sub(r"\$\((?!curl)[^)]*\)", "1", body)
        for command in CURL.findall(plain) if language in ("console", "sh") else ():
            for address in ADDRESS.findall(command):
                given = re.search(r"-X ([A-Z]+)", command)
                method = (
                    given[1]
                    if given
                    else "POST"
                    if re.search(r" -d ['\"][{$]", command)
                    else "GET"
                )
                yield (
                    method.lower(),
                    re.sub(r"\$[A-Z]+", "1", address).partition("?")[0],
                )


def is_described(
    method: str, address: str, *, described: dict[str, dict[str, object]]
) -> bool:
    """Whether the API's description has this method at this address; names in it stand for anything."""
    patterns = (
        (re.sub(r"\{[^}]+\}", "[^/]+", path), operations)
        for path, operations in described.items()
    )
    return any(
        re.fullmatch(pattern, f"/api/v1{address}") and method in operations
        for pattern, operations in patterns
    )


def proofs_in(row: str) -> Iterator[tuple[str, str]]:
    """(test, file) of every test that a row names."""
    for part in row.split(";"):
        file = re.search(r"in `(tests/[\w/]+\.py)`", part)
        if file:
            yield from ((test, file[1]) for test in re.findall(r"`(test_\w+)`", part))


def is_defined(test: str, file: str) -> bool:
    """Whether the file defines a test of this name."""
    path = ROOT / file
    return path.exists() and f"def {test}(" in path.read_text()
