"""What differs between two policies, line by line, in words. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

from policy import words
from policy.document import Override, Policy, Route, StepPlan, Thresholds, Where

T = TypeVar("T")


class Difference(NamedTuple):
    """One place where two policies differ; None is what is not there on that side."""

    place: str
    before: str | None
    after: str | None

    @property
    def line(self) -> str:
        """As one sentence says it: "GPUs in one request: 2 GPUs → 4 GPUs"."""
        return f"{self.place}: {self.before or 'nothing'} → {self.after or 'nothing'}"


def differences(before: Policy, after: Policy) -> tuple[Difference, ...]:
    """Every difference, in the order of the document; empty if and only if the policies are the same."""
    return (
        *_thresholds(before.thresholds, after.thresholds),
        *_overrides(before.overrides, after.overrides),
        *_routes(before.routes, after.routes),
        *_plain(
            words.LAPSE.words, before.lapse_days, after.lapse_days, words.LAPSE.unit
        ),
    )


def _plain(place: str, before: Any, after: Any, unit: str = "") -> Iterator[Difference]:
    if before != after:
        yield Difference(place, words.said(before, unit), words.said(after, unit))


def _thresholds(before: Thresholds, after: Thresholds) -> Iterator[Difference]:
    for each in fields(Thresholds):
        label = words.THRESHOLDS[each.name]
        yield from _plain(
            label.words,
            getattr(before, each.name),
            getattr(after, each.name),
            label.unit,
        )


def _overrides(
    before: Sequence[Override], after: Sequence[Override]
) -> Iterator[Difference]:
    old = _named(before, [words.where(each.where) for each in before])
    new = _named(after, [words.where(each.where) for each in after])
    for name in _all(old, new):
        sets = [each[name].set if name in each else {} for each in (old, new)]
        if not any(sets) and (name in old) != (name in new):
            yield Difference(
                f"Exception for {name}", *_present(name in old, name in new)
            )
        yield from _set(name, *sets)
        if name in old and name in new:
            yield from _where(f"Exception for {name}", old[name].where, new[name].where)
    yield from _order("Order of exceptions", old, new)


def _present(before: bool, after: bool) -> tuple[str | None, str | None]:
    return ("changes nothing" if before else None), (
        "changes nothing" if after else None
    )


def _set(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Difference]:
    for key in words.THRESHOLDS:
        place = f"{words.THRESHOLDS[key].words}, for {name}"
        if key in before and key in after:
            yield from _plain(
                place, before[key], after[key], words.THRESHOLDS[key].unit
            )
        elif key in before or key in after:
            pair = [
                words.threshold(key, side[key]) if key in side else None
                for side in (before, after)
            ]
            yield Difference(place, *pair)


def _routes(before: Sequence[Route], after: Sequence[Route]) -> Iterator[Difference]:
    old = _named(before, [each.name or "without a name" for each in before])
    new = _named(after, [each.name or "without a name" for each in after])
    for name in _all(old, new):
        place = f"Route {name}"
        if name in old and name in new:
            yield from _route(place, old[name], new[name])
        else:
            pair = [
                words.route(side[name]) if name in side else None for side in (old, new)
            ]
            yield Difference(place, *pair)
    yield from _order("Order of routes", old, new)


def _route(place: str, before: Route, after: Route) -> Iterator[Difference]:
    yield from _where(f"{place}: for", before.where, after.where)
    yield from _plain(f"{place}: from", before.gpus_from, after.gpus_from, "GPUs")
    yield from _plain(f"{place}: from", before.usd_from, after.usd_from, "USD")
    for number in range(max(len(before.steps), len(after.steps))):
        old, new = (
            side.steps[number] if number < len(side.steps) else None
            for side in (before, after)
        )
        yield from _step(f"{place}, step {number + 1}", old, new)


def _where(place: str, before: Where, after: Where) -> Iterator[Difference]:
    if before != after:
        pair = words.where(before), words.where(after)
        if pair[0] == pair[1]:  # a flavor and an environment may have one name
            pair = words.where_by_kind(before), words.where_by_kind(after)
        yield Difference(place, *pair)


def _step(
    place: str, before: StepPlan | None, after: StepPlan | None
) -> Iterator[Difference]:
    if before is None or after is None:
        old, new = (words.step(side) if side else None for side in (before, after))
        yield Difference(place, old, new)
        return
    for name, label in words.STEP.items():
        yield from _plain(
            f"{place}: {label.words}",
            getattr(before, name),
            getattr(after, name),
            label.unit,
        )


def _named(parts: Sequence[T], names: Sequence[str]) -> dict[str, T]:
    """Parts by name; what shares a name is told apart by its place among them."""
    seen: Counter[str] = Counter()
    found = {}
    for part, name in zip(parts, names, strict=True):
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = part
    return found


def _all(before: Mapping[str, T], after: Mapping[str, T]) -> list[str]:
    return list(dict.fromkeys([*before, *after]))


def _order(
    place: str, before: Mapping[str, T], after: Mapping[str, T]
) -> Iterator[Difference]:
    """What is on both sides, when it comes in another order: later exceptions and earlier routes win."""
    old = [name for name in before if name in after]
    new = [name for name in after if name in before]
    if old != new:
        yield Difference(place, ", ".join(old), ", ".join(new))
