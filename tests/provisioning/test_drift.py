"""What differs, who did it and since when, read from the object alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.plan import Key, Step, Verb, first_difference, plan
from provisioning.drift.comparing import (
    Field,
    What,
    differences,
    digest,
    finding,
    kept,
    owner,
    spared,
)
from provisioning.drift.paths import leaves, text_of, value_at
from provisioning.drift.words import changes, sentence
from tests.provisioning.specs import SAMPLE

OBJECTS = tenancy_objects(SAMPLE)
QUOTA = next(manifest for manifest in OBJECTS if manifest["kind"] == "ResourceQuota")
LIMITS = next(manifest for manifest in OBJECTS if manifest["kind"] == "LimitRange")
GPU = "requests.nvidia.com/gpu"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DOCUMENTS = st.recursive(
    st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "egress"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def live_of(manifest: dict[str, Any], *entries: dict[str, Any]) -> dict[str, Any]:
    """The object as the API server holds it, with these managers."""
    ours = {
        "manager": "quartermaster",
        "operation": "Apply",
        "time": "2026-11-20T11:00:00Z",
        "fieldsV1": {},
    }
    metadata = manifest["metadata"] | {"managedFields": [ours, *entries]}
    return manifest | {"metadata": metadata}


def entry(
    manager: str, time: str, fields: dict[str, Any], operation: str = "Update"
) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "time": time,
        "fieldsV1": fields,
    }


def step(manifest: dict[str, Any], verb: Verb = Verb.UPDATE) -> Step:
    return Step(verb, Key.of(manifest), None if verb is Verb.DELETE else manifest)


def changed_quota(**hard: str) -> dict[str, Any]:
    spec = {"hard": QUOTA["spec"]["hard"] | hard}
    edit = entry(
        "kubectl-edit",
        "2026-11-20T12:00:00Z",
        {"f:spec": {"f:hard": {f"f:{key}": {} for key in hard}}},
    )
    return live_of(QUOTA | {"spec": spec}, edit)


def test_every_field_that_differs_is_told_with_who_and_since() -> None:
    found = finding(step(QUOTA), changed_quota(**{GPU: "64", "pods": "500"}))
    assert (found.what, found.who, found.operation, found.since) == (
        What.CHANGED,
        "kubectl-edit",
        "Update",
        NOON,
    )
    told = {field.path: (field.wanted, field.live, field.who) for field in found.fields}
    hard = QUOTA["spec"]["hard"]
    assert told == {
        f"spec.hard.{GPU}": (hard[GPU], "64", "kubectl-edit"),
        "spec.hard.pods": (hard["pods"], "500", "kubectl-edit"),
    }


def test_of_several_managers_the_newest_is_named_and_each_field_has_its_own() -> None:
    live = changed_quota(pods="500")
    live["spec"]["hard"]["requests.cpu"] = "9999"
    fields: dict[str, Any] = {"f:spec": {"f:hard": {"f:requests.cpu": {}}}}
    live["metadata"]["managedFields"].append(
        entry("helm", "2026-11-20T13:00:00Z", fields, "Apply")
    )
    found = finding(step(QUOTA), live)
    assert (found.who, found.operation) == ("helm", "Apply")
    assert {field.path: field.who for field in found.fields} == {
        "spec.hard.requests.cpu": "helm",
        "spec.hard.pods": "kubectl-edit",
    }


def test_what_was_taken_away_has_nobody() -> None:
    hard = {name: value for name, value in QUOTA["spec"]["hard"].items() if name != GPU}
    found = finding(step(QUOTA), live_of(QUOTA | {"spec": {"hard": hard}}))
    assert (found.who, found.since) == ("", None)
    assert [(field.path, field.live) for field in found.fields] == [
        (f"spec.hard.{GPU}", None)
    ]


def test_an_object_that_is_gone_is_told_field_by_field() -> None:
    found = finding(step(QUOTA, Verb.CREATE), None)
    assert (found.what, found.who) == (What.MISSING, "")
    assert f"spec.hard.{GPU}" in {field.path for field in found.fields}
    assert not {"kind", "apiVersion", "metadata.name"} & {
        field.path for field in found.fields
    }


def test_what_is_too_much_was_put_there_by_its_manager() -> None:
    stray = live_of(
        QUOTA, entry("kubectl-create", "2026-11-20T12:00:00Z", {"f:spec": {}})
    )
    found = finding(step(QUOTA, Verb.DELETE), stray)
    assert (found.what, found.fields, found.who) == (
        What.LEFT_OVER,
        (),
        "kubectl-create",
    )


def test_items_of_lists_are_found_by_their_keys_their_values_and_as_a_whole() -> None:
    live = {
        "metadata": {
            "managedFields": [
                entry(
                    "by-key",
                    "2026-11-20T12:00:00Z",
                    {"f:a": {'k:{"name":"two"}': {"f:n": {}}}},
                ),
                entry("by-value", "2026-11-20T12:00:00Z", {"f:b": {'v:"x"': {}}}),
                entry("whole", "2026-11-20T12:00:00Z", {"f:c": {}}),
                entry("by-place", "2026-11-20T12:00:00Z", {"f:d": {"i:1": {}}}),
            ]
        },
        "a": [{"name": "one", "n": 1}, {"name": "two", "n": 2}],
        "b": ["y", "x"],
        "c": [1, 2],
        "d": [1, 2],
    }
    assert owner(live, ("a", 1, "n"))[0] == "by-key"
    assert owner(live, ("a", 0, "n"))[0] == ""
    assert [owner(live, ("b", n))[0] for n in (0, 1)] == ["", "by-value"]
    assert owner(live, ("c", 1))[0] == "whole"
    assert [owner(live, ("d", n))[0] for n in (0, 1)] == ["", "by-place"]


def test_a_time_that_is_none_names_the_manager_alone() -> None:
    live = live_of(
        QUOTA,
        {
            "manager": "odd",
            "operation": "Update",
            "time": "yesterday",
            "fieldsV1": {"f:spec": {}},
        },
    )
    assert owner(live, ("spec",)) == ("odd", "Update", None)


def quota_of(spec: Any) -> dict[str, Any]:
    """A document in which every field counts."""
    return {"kind": "ResourceQuota", "spec": spec}


@given(DOCUMENTS, DOCUMENTS)
def test_in_what_is_the_portals_there_are_differences_exactly_where_a_plan_sees_one(
    wanted: Any, live: Any
) -> None:
    pair = quota_of(wanted), quota_of(live)
    assert bool(list(differences(*pair))) == bool(first_difference(*pair))


@given(DOCUMENTS, DOCUMENTS)
def test_there_are_differences_exactly_where_a_plan_sees_one(
    wanted: Any, live: Any
) -> None:
    assert bool(list(differences(wanted, live))) == bool(first_difference(wanted, live))


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(["x", "egress"]), DOCUMENTS),
    st.dictionaries(st.sampled_from(["x", "egress"]), DOCUMENTS),
)
def test_a_manifest_that_spares_every_difference_changes_nothing(
    wanted: dict[str, Any], live: dict[str, Any]
) -> None:
    for pair in ((wanted, live), (quota_of(wanted), quota_of(live))):
        places = [field.at for field in differences(*pair)]
        assert first_difference(spared(pair[0], pair[1], places), pair[1]) == ""


def test_sparing_one_field_leaves_the_others_wanted() -> None:
    live = changed_quota(**{GPU: "64", "pods": "500"})
    made = spared(QUOTA, live, [("spec", "hard", "pods")])
    assert made["spec"]["hard"] == QUOTA["spec"]["hard"] | {"pods": "500"}
    assert plan([made], {Key.of(QUOTA): live})[0].why.startswith(f".spec.hard.{GPU}")


def test_what_we_own_and_want_no_longer_is_a_difference_too() -> None:
    ours: dict[str, Any] = {"f:spec": {"f:hard": {"f:pods": {}, "f:secrets": {}}}}
    live = live_of(QUOTA | {"spec": {"hard": QUOTA["spec"]["hard"] | {"secrets": "9"}}})
    live["metadata"]["managedFields"][0]["fieldsV1"] = ours
    [field] = finding(step(QUOTA), live).fields
    assert (field.path, field.wanted, field.live) == ("spec.hard.secrets", None, "9")


def test_a_place_reads_as_one_would_say_it() -> None:
    [path] = [at for at, value in leaves(LIMITS) if value == "500m"]
    assert text_of(path) == "spec.limits[0].defaultRequest.cpu"
    assert value_at(LIMITS, path) == "500m"
    assert value_at(LIMITS, ("spec", "limits", 9, "type")) is None


def test_what_is_stored_is_bounded_and_storable() -> None:
    assert kept("a\x00b") == "a\ufffdb"
    assert len(kept("x" * 10_000)) < 2100
    assert kept({"b": 1, "a": [None]}) == {"a": [None], "b": 1}


def test_a_digest_tells_manifests_apart() -> None:
    assert digest([QUOTA]) == digest([dict(reversed(QUOTA.items()))])
    assert digest([QUOTA]) != digest([changed_quota(pods="1")])


def said(*fields: Field, what: str = "changed", who: str = "kubectl-edit") -> str:
    stored = [field.to_json() for field in fields]
    return sentence(
        what=what, kind="ResourceQuota", name="team-quota", fields=stored, who=who
    )


def test_it_is_said_in_words() -> None:
    gpus = Field(("spec", "hard", GPU), "4", "64", "kubectl-edit")
    assert said(gpus) == "kubectl-edit changed GPUs allowed from 4 to 64"
    gone = Field(("spec", "hard", "pods"), "50", None)
    assert said(gone, who="") == "Somebody changed pods allowed from 50 to nothing"
    extra = Field(("spec", "hard", "count/jobs.batch"), None, "3")
    assert said(gpus, gone, gpus, extra).endswith(
        "GPUs allowed from 4 to 64 and 1 more"
    )
    assert said(what="missing", who="") == (
        "Somebody deleted ResourceQuota team-quota (the ceiling of what can be used)"
    )
    assert "is not wanted" in said(what="left over")
    rules = Field(("spec", "egress"), [{"to": []}], [{}])
    assert said(rules) == "kubectl-edit changed traffic let out (spec.egress)"


def test_its_difference_is_a_table() -> None:
    rows = changes(
        [
            Field(("spec", "x"), "4", None).to_json(),
            Field(("spec", "y"), None, {"a": 1}).to_json(),
        ]
    )
    assert rows == [
        {"path": "spec.x", "before": "4", "after": None},
        {"path": "spec.y", "before": None, "after": '{"a": 1}'},
    ]
