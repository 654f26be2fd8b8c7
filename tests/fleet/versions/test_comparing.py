"""Which version is older, and how the versions of nodes are said."""

from collections.abc import Mapping
from typing import Any

import pytest

from fleet.versions.comparing import (
    driver_words,
    lowest,
    main,
    marks,
    minority,
    ordered,
)
from fleet.versions.reading import Component, versions_of

DRIVER = Component.DRIVER


def seen(*drivers: str, cuda: str = "") -> Mapping[str, Any]:
    return versions_of(
        [
            {
                "metadata": {
                    "labels": {
                        "nvidia.com/cuda.driver-version.full": one,
                        "nvidia.com/cuda.runtime-version.full": cuda,
                    }
                }
            }
            for one in drivers
        ]
    )


def test_nothing_is_known_of_nodes_that_were_never_seen() -> None:
    assert (main({}, DRIVER), lowest({}, DRIVER), minority({}, DRIVER)) == ("", "", "")
    assert driver_words({}) == ""


def test_all_nodes_alike_are_one_version() -> None:
    found = seen("570.86.15", "570.86.15", cuda="12.8")
    assert main(found, DRIVER) == lowest(found, DRIVER) == "570.86.15"
    assert minority(found, DRIVER) == ""
    assert driver_words(found) == "driver 570.86.15, CUDA up to 12.8"


def test_nodes_that_differ_are_told() -> None:
    found = seen(*["570.86.15"] * 6, *["550.90.07"] * 2)
    assert main(found, DRIVER) == "570.86.15"
    assert lowest(found, DRIVER) == "550.90.07"
    assert minority(found, DRIVER) == "2 of 8 nodes: 550.90.07"
    assert driver_words(found) == "driver 570.86.15 or 550.90.07"


def test_nodes_that_do_not_tell_are_told() -> None:
    assert minority(seen("570.1", "", ""), DRIVER) == "2 of 3 nodes: not told"
    assert main(seen("570.1", "", ""), DRIVER) == "570.1"
    assert minority(seen("", ""), DRIVER) == ""
    assert driver_words(seen("", "", cuda="13.0")) == "CUDA up to 13.0"


def test_what_all_nodes_can_do_is_known_once_all_of_them_tell() -> None:
    assert lowest(seen("570.1", "550.1"), DRIVER) == "550.1"
    assert lowest(seen("570.1", "550.1", ""), DRIVER) == ""
    # The oldest may be among those that are not kept.
    many = seen(*(f"570.{number}" for number in range(2, 22)))
    assert lowest(many, DRIVER) == ""


def test_very_many_versions_are_counted_together() -> None:
    one_each = seen("570.1", "570.1", *(f"570.{number}" for number in range(2, 22)))
    assert minority(one_each, DRIVER) == (
        "1 of 22 nodes: 570.10, 1 of 22 nodes: 570.11, 1 of 22 nodes: 570.12, "
        "17 of 22 nodes: others"
    )
    assert driver_words(one_each) == "driver 570.1 or 570.10 or 570.11 or others"


def test_one_version_beyond_those_that_are_named_is_counted() -> None:
    three = seen("570.1", "570.2", "570.3")
    assert driver_words(three) == "driver 570.1 or 570.2 or 570.3"
    five = seen("570.1", "570.2", "570.3", "570.4", "570.5")
    assert minority(five, DRIVER).endswith("570.4, 1 of 5 nodes: others")


def test_older_is_said_with_the_newest() -> None:
    assert marks(["570.86.15", "570.9.1", "570.86.15", ""]) == {
        "570.86.15": "",
        "570.9.1": "older than 570.86.15",
    }
    assert marks([]) == marks(["", ""]) == {}
    assert marks(["v1.36.2", "v1.36.2"]) == {"v1.36.2": ""}
    assert marks(["550.54", "550.54.15"])["550.54"] == "older than 550.54.15"


def test_only_what_is_of_one_sort_is_older_or_newer() -> None:
    assert marks(["containerd 1.7.27", "containerd 2.1.0", "cri-o 1.34.0"]) == {
        "containerd 1.7.27": "older than containerd 2.1.0",
        "containerd 2.1.0": "",
        "cri-o 1.34.0": "differs from others",
    }
    assert marks(["containerd 2.1.0", "cri-o 1.34.0"]) == {
        "containerd 2.1.0": "differs from others",
        "cri-o 1.34.0": "differs from others",
    }


@pytest.mark.parametrize(
    ("versions", "first"),
    [
        (["v1.9.4", "v1.36.2", "v1.10.0"], ["v1.36.2", "v1.10.0", "v1.9.4"]),
        (["550.54", "550.54.15", "550.54"], ["550.54.15", "550.54"]),
        (
            ["6.8.0-9-azure", "6.8.0-1034-azure"],
            ["6.8.0-1034-azure", "6.8.0-9-azure"],
        ),
        (["٥٧٠", "", "beta"], ["", "beta", "٥٧٠"]),
    ],
)
def test_versions_are_ordered_by_their_numbers(
    versions: list[str], first: list[str]
) -> None:
    assert ordered(versions) == first
