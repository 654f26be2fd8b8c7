"""Field sets in the form of managedFields."""

from sandbox.kubernetes.fieldsets import (
    FieldSet,
    difference,
    dotted,
    intersection,
    paths,
    union,
)


def test_a_member_with_members_below_it_keeps_its_mark() -> None:
    assert union({"f:a": {}}, {"f:a": {"f:b": {}}}) == {"f:a": {".": {}, "f:b": {}}}


def test_taking_a_parent_leaves_its_children() -> None:
    assert difference({"f:a": {".": {}, "f:b": {}}}, {"f:a": {}}) == {
        "f:a": {"f:b": {}}
    }


def test_taking_all_children_leaves_nothing_of_a_parent_that_is_no_member() -> None:
    assert difference({"f:a": {"f:b": {}}}, {"f:a": {"f:b": {}, "f:c": {}}}) == {}


def test_only_shared_members_are_shared() -> None:
    left: FieldSet = {"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}
    right: FieldSet = {"f:a": {"f:b": {}}, "f:e": {}}
    assert intersection(left, right) == {"f:a": {"f:b": {}}}


def test_a_parent_alone_shares_nothing_with_its_children() -> None:
    assert intersection({"f:a": {}}, {"f:a": {"f:b": {}}}) == {}


def test_paths_are_written_as_conflicts_write_them() -> None:
    fields: FieldSet = {
        "f:spec": {
            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}}}
        }
    }
    assert [dotted(path) for path in paths(fields)] == [
        '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=80,protocol="TCP"].name',
    ]


def test_a_set_item_is_written_by_its_value() -> None:
    assert (
        dotted(("f:metadata", "f:finalizers", 'v:"a"')) == '.metadata.finalizers[="a"]'
    )
