"""The alerts that come with the product: rules of Prometheus about metrics that there are, and explained."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from portal.guide import address_of, page_of
from portal.metrics.exposition import text_of
from portal.metrics.gathering import gather
from portal.models import LATE_AFTER
from scripts.packages import ROOT
from tests import factories

FILE = ROOT / "deploy" / "prometheus" / "quartermaster-rules.yaml"
HOW_TO = ROOT / "docs" / "how-to" / "watch-the-portal.md"
METRIC = re.compile(r"\b(?:quartermaster_\w+|up)\b")
LABEL = re.compile(r"\$labels\.(\w+)")
DURATION = re.compile(r"\d+[smhd]")
SEVERITIES = {"critical", "warning", "info"}
# What Prometheus itself keeps of each target.
OF_PROMETHEUS = "up"


def rules() -> list[Mapping[str, Any]]:
    """Every rule of the file."""
    [group] = yaml.safe_load(FILE.read_text())["groups"]
    assert set(group) == {"name", "rules"}
    found: list[Mapping[str, Any]] = group["rules"]
    return found


each_rule = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])


@pytest.fixture
def labels_of(db: None) -> dict[str, set[str]]:
    """The labels of every metric, by its name, of a portal that has something of everything."""
    factories.flavor(factories.cluster("training"))
    text = text_of(gather(now=timezone.now())).decode()
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@each_rule
def test_it_is_a_rule_of_prometheus(rule: Mapping[str, Any]) -> None:
    assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert re.fullmatch(r"Quartermaster[A-Za-z]+", rule["alert"])
    assert DURATION.fullmatch(rule.get("for", "1m"))
    assert set(rule["labels"]) == {"severity"}
    assert rule["labels"]["severity"] in SEVERITIES
    assert set(rule["annotations"]) == {"summary", "runbook_url"}
    for opening, closing in ("()", "[]", "{}"):
        assert rule["expr"].count(opening) == rule["expr"].count(closing)


@each_rule
def test_it_is_about_metrics_and_labels_that_there_are(
    rule: Mapping[str, Any], labels_of: dict[str, set[str]]
) -> None:
    names = METRIC.findall(rule["expr"])
    assert names
    assert {name for name in names if name != OF_PROMETHEUS} <= set(labels_of)
    # Of the metric that the alert is about, which is the first.
    told = labels_of.get(names[0], set())
    assert set(LABEL.findall(rule["annotations"]["summary"])) <= told
    for joined in re.findall(r"on \((\w+)\)", rule["expr"]):
        assert all(joined in labels_of[name] for name in names)


@each_rule
def test_it_says_what_is_wrong_and_leads_to_what_to_do(
    rule: Mapping[str, Any],
) -> None:
    summary, link = (rule["annotations"][name] for name in ("summary", "runbook_url"))
    assert summary.endswith(".")
    address, _, anchor = link.removeprefix("https://gpus.example.com").partition("#")
    assert address == address_of(HOW_TO.stem)
    assert f'<h3 id="{anchor}">{rule["alert"]}</h3>' in page_of(HOW_TO.stem).html


def test_no_two_alerts_have_one_name() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))


def test_workers_stand_still_for_the_alert_when_they_do_for_workz() -> None:
    [expression] = [
        rule["expr"] for rule in rules() if rule["alert"].endswith("WorkersStandStill")
    ]
    assert timedelta(seconds=int(expression.rpartition(" ")[2])) == LATE_AFTER


def test_the_how_to_explains_every_metric_with_its_labels_and_no_other(
    labels_of: dict[str, set[str]],
) -> None:
    assert dict(explained()) == labels_of


def test_the_how_to_explains_every_alert_and_no_other() -> None:
    explained_alerts = re.findall(r"^### (\w+)$", HOW_TO.read_text(), re.MULTILINE)
    assert explained_alerts == [rule["alert"] for rule in rules()]


def explained() -> Iterator[tuple[str, set[str]]]:
    """The metrics of the how-to's table, with their labels."""
    for line in HOW_TO.read_text().splitlines():
        if line.startswith("| `quartermaster_"):
            name, labels = (cell.strip() for cell in line.split("|")[1:3])
            yield name.strip("`"), set(re.findall(r"`(\w+)`", labels))
