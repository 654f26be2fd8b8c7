"""Whether a version is older than others of its sort, and how versions of nodes are said in words. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleet.versions.reading import Component, Count

NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)*", re.ASCII)
# So many versions are named in a row of words.
MAX_NAMED = 3


def counts(versions: Mapping[str, Any], component: Component) -> Sequence[Count]:
    """How many nodes have which version of a component; none of a kind whose nodes were never seen."""
    found: Sequence[Count] = versions.get(component, ())
    return found


def main(versions: Mapping[str, Any], component: Component) -> str:
    """The version that most nodes have, of those that tell one; empty where none does."""
    return next(
        (one["version"] for one in counts(versions, component) if one["version"]), ""
    )


def lowest(versions: Mapping[str, Any], component: Component) -> str:
    """The oldest version among the nodes: what all of them can do; empty where one of them tells none.

    Of very many versions not all are kept, and so the oldest may not be known, either.
    """
    found = _named(versions, component)
    told = sum(one["nodes"] for one in counts(versions, component) if one["version"])
    is_whole = bool(found) and told == versions.get("nodes")
    return min(found, key=_order) if is_whole else ""


def minority(versions: Mapping[str, Any], component: Component) -> str:
    """The nodes that differ from most, in words: "2 of 8 nodes: 550.90.07"; empty while all are alike."""
    found, total = counts(versions, component), versions.get("nodes", 0)
    chief = main(versions, component)
    said = [one for one in found if one["version"] != chief]
    # Of versions beyond those that are kept only the number of nodes is known.
    beyond = total - sum(one["nodes"] for one in found)
    words = [
        f"{one['nodes']} of {total} nodes: {one['version'] or 'not told'}"
        for one in said[:MAX_NAMED]
    ]
    rest = beyond + sum(one["nodes"] for one in said[MAX_NAMED:])
    words += [f"{rest} of {total} nodes: others"] if rest > 0 else []
    return ", ".join(words) if chief else ""


def driver_words(versions: Mapping[str, Any]) -> str:
    """The driver and CUDA of a kind in short: "driver 570.86.15, CUDA up to 12.8"; empty where no node tells them."""
    driver, cuda = (
        _either(versions, one) for one in (Component.DRIVER, Component.CUDA)
    )
    words = [f"driver {driver}"] if driver else []
    words += [f"CUDA up to {cuda}"] if cuda else []
    return ", ".join(words)


def marks(versions: Iterable[str]) -> Mapping[str, str]:
    """By each version of the fleet in what it differs from the others, in words; empty where it does not.

    One that lags behind is older than the newest of its sort; of containerd and CRI-O neither is.
    """
    known = Counter(one for one in versions if one)
    sorts = Counter[str]()
    newest = dict[str, str]()
    for version, rows in known.items():
        sort = _sort(version)
        sorts[sort] += rows
        newest[sort] = max(newest.get(sort, version), version, key=_order)
    # Of two sorts that are as frequent, neither is the usual one.
    most = max(sorts.values(), default=0)
    usual = [sort for sort, rows in sorts.items() if rows == most]
    return {
        one: _mark(one, newest[_sort(one)], is_usual=usual == [_sort(one)])
        for one in known
    }


def _mark(version: str, newest: str, *, is_usual: bool) -> str:
    if _order(version) < _order(newest):
        return f"older than {newest}"
    return "" if is_usual else "differs from others"


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions, each once, those of one sort together and the newest of them first."""
    newest_first = sorted(sorted(set(versions)), key=_order, reverse=True)
    return sorted(newest_first, key=_sort)


def _either(versions: Mapping[str, Any], component: Component) -> str:
    found = _named(versions, component)
    more = [] if len(found) <= MAX_NAMED else ["others"]
    return " or ".join([*found[:MAX_NAMED], *more])


def _named(versions: Mapping[str, Any], component: Component) -> list[str]:
    return [one["version"] for one in counts(versions, component) if one["version"]]


def _sort(version: str) -> str:
    """What it is a version of, so that only like is compared with like: "containerd", "Ubuntu LTS"."""
    return NUMBERS.sub("#", version)


def _order(version: str) -> tuple[int, ...]:
    # A label has 63 characters: no number is long enough to cost anything.
    return tuple(
        int(part) for numbers in NUMBERS.findall(version) for part in numbers.split(".")
    )
