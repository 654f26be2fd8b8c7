"""What `make bench` says of its figures is what they are."""

import json
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import results
from bench.__main__ import BENCHMARKS, main
from bench.results import Better, Goal, Measured

FIGURES = st.floats(0.001, 1e6)
PAIRS = st.lists(st.tuples(FIGURES, FIGURES), min_size=5, max_size=15)


def measured(portal: list[float], peer: list[float], **bounds: object) -> Measured:
    """A measurement in milliseconds of which more is better."""
    plain = {
        "what": "a page; peer: another",
        "unit": "ms",
        "better": Better.PEER_OVER_PORTAL,
    }
    return Measured(portal=portal, peer=peer, **(plain | bounds))  # type: ignore[arg-type]


def test_a_ratio_is_that_of_the_medians_with_the_least_and_the_most_of_the_pairs() -> (
    None
):
    entry = measured([1, 2, 3, 2, 9], [100, 300, 300, 500, 90]).as_json()

    assert entry["portal"] == 2
    assert entry["peer"] == 300
    assert (entry["ratio"], entry["min"], entry["max"]) == (150, 10, 250)
    assert entry["runs"] == 5
    assert entry["unit"] == "ms"


def test_a_share_is_the_portals_part_of_the_peers() -> None:
    assert measured([30] * 5, [40] * 5, better=Better.PORTAL_OVER_PEER).ratio == 0.75


@given(pairs=PAIRS, better=st.sampled_from(Better))
def test_a_ratio_is_never_outside_its_pairs(
    pairs: list[tuple[float, float]], better: Better
) -> None:
    portal, peer = map(list, zip(*pairs, strict=True))
    found = measured(portal, peer, better=better)

    assert min(found.ratios) * 0.999999 <= found.ratio <= max(found.ratios) * 1.000001


@given(pairs=PAIRS)
def test_the_order_of_the_pairs_is_of_no_matter(
    pairs: list[tuple[float, float]],
) -> None:
    portal, peer = map(list, zip(*pairs, strict=True))

    assert (
        measured(portal, peer).as_json() == measured(portal[::-1], peer[::-1]).as_json()
    )
    assert measured(portal, peer).as_json()["portal"] == statistics.median(portal)


@pytest.mark.parametrize(
    ("portal", "peer", "words"),
    [
        ([1] * 5, [1] * 4, "5 figures"),
        ([1] * 4, [1] * 4, "too few"),
        ([1] * 4 + [0], [1] * 5, "no time"),
    ],
)
def test_figures_that_say_nothing_are_refused(
    portal: list[float], peer: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        measured(portal, peer)


@pytest.mark.parametrize(
    ("goal", "is_met"),
    [
        (Goal("ratio", 100, least=100), True),
        (Goal("ratio", 99.99, least=100), False),
        (Goal("ratio", 1.2, most=1.2), True),
        (Goal("ratio", 1.21, most=1.2), False),
        (Goal("ratio", float("nan"), most=1.2), False),
        (Goal("ratio", 5), True),
    ],
)
def test_a_bound_is_kept_when_it_is_just_reached(goal: Goal, is_met: bool) -> None:
    assert goal.is_met is is_met


def test_one_missed_goal_is_a_missed_target() -> None:
    slow = measured([1] * 5, [50] * 5, least=100)
    chatty = measured(
        [1] * 5, [500] * 5, least=100, others=[Goal("queries", 13, most=12)]
    )

    assert (slow.is_met, chatty.is_met) == (False, False)
    assert measured(
        [1] * 5, [500] * 5, least=100, others=[Goal("queries", 12, most=12)]
    ).is_met


def test_the_table_has_a_line_for_each_goal_and_says_which_are_missed() -> None:
    found = measured(
        [125] * 5, [13_460] * 5, least=100, others=[Goal("queries", 13, most=12)]
    )
    head, first, second = results.table({"B5": found}).splitlines()

    assert head.split() == [
        "what",
        "portal",
        "peer",
        "ratio",
        "(least",
        "–",
        "most)",
        "held",
        "against",
    ]
    assert first.split("  ")[0] == "B5"
    assert "125 ms" in first
    assert "13,460 ms" in first
    assert "108 (108 – 108)" in first
    assert first.endswith("≥ 100               ok")
    assert second.strip() == "queries: 13 (≤ 12)  MISSED"


def test_the_file_holds_one_entry_for_each_benchmark(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results.write(path, {"B5": measured([2] * 5, [500] * 5, least=100)})
    entry = json.loads(path.read_text())["B5"]

    assert {
        key: entry[key]
        for key in ("ratio", "portal", "peer", "unit", "runs", "min", "max")
    } == {
        "ratio": 250,
        "portal": 2,
        "peer": 500,
        "unit": "ms",
        "runs": 5,
        "min": 250,
        "max": 250,
    }
    assert entry["goals"] == [
        {"what": "ratio", "value": 250, "bound": "≥ 100", "met": True}
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0123, "0.0123"),
        (0.987, "0.987"),
        (1.04, "1.04"),
        (12.34, "12.3"),
        (123.4, "123"),
        (7, "7"),
        (12345, "12,345"),
        (0.0, "0"),
        (float("nan"), "not measured"),
    ],
)
def test_three_digits_are_shown(value: float, words: str) -> None:
    assert results.figure(value) == words


@pytest.mark.parametrize(
    ("names", "found"),
    [([""], ["B3", "B5"]), (["b5"], ["B5"]), ([" B5", "B3 "], ["B3", "B5"])],
)
def test_benchmarks_are_chosen_by_name(names: list[str], found: list[str]) -> None:
    assert results.chosen(names, ["B3", "B5"]) == found


def test_an_unknown_benchmark_is_refused_in_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "B5,B99"]) == 2

    assert (
        capsys.readouterr().err
        == f"bench: There is no benchmark B99; there are {', '.join(BENCHMARKS)}.\n"
    )


@pytest.mark.parametrize("module", BENCHMARKS.values())
def test_every_benchmark_has_its_module(module: str) -> None:
    source = Path(results.__file__).with_name(f"{module}.py").read_text()

    assert "def measure(on: rig.Rig) -> Measured:" in source
