"""Every state of a Workload that was recorded on a real cluster is explained, and none of them by the fallback."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.known import objects, recorded, then
from workloads.explaining import UNKNOWN, explain
from workloads.observed import Facts, Workload
from workloads.reading.work import workload_of

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("QM_SHARED", ROOT.parent / "shared"))
FOLDERS = [folder for folder in (ROOT / "tests" / "recordings", SHARED / "recordings") if folder.is_dir()]
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.json"))
# Words of Kueue and Kubernetes that a sentence for people does without.
JARGON = ("Workload", "ClusterQueue", "LocalQueue", "flavor", "dmission", "cohort", "reempt", "vict", "odset")


@pytest.mark.parametrize(
    ("row", "workload"),
    [pytest.param(*each, id=f"{each[0]['from']} {each[0]['code']}") for each in recorded()],
)
def test_a_recorded_state_has_its_code_and_class(row: Mapping[str, Any], workload: Workload) -> None:
    found = explain(Facts(workload=workload), now=then(workload))
    assert (found.code, found.outlook) == (row["code"], row["outlook"])
    assert not [word for word in JARGON if word in f"{found.what} {found.line} {found.when} {found.do}"]


def test_the_recorded_states_are_of_all_classes() -> None:
    assert {row["outlook"] for row, _ in recorded()} == {"wait", "change", "escalate", "never"}
    assert len({row["code"] for row, _ in recorded()}) > 25


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_workload_of_a_recording_falls_into_the_fallback(path: Path) -> None:
    for step in json.loads(path.read_text()):
        for found in objects(step["response"].get("body"), "Workload"):
            workload = workload_of(found)
            why = explain(Facts(workload=workload), now=then(workload))
            assert why.code != UNKNOWN, (step["name"], why.detail)
            assert all((why.what, why.line, why.when, why.do)), step["name"]
