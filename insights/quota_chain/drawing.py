"""How the chain is drawn: one bar a link, as long as the room that it leaves, and one line where the ask ends. Pure.

Every bar has the same scale, so that the link which stops an ask is the one whose bar does not reach the line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from capacity.chain.links import Link, blocking
from ui.drawing import percent

# How much of the width is left of the line, and that a bar of nothing is still seen, in percent.
LINE_AT, MIN_WIDTH = 60, 0.6


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A link as it is drawn: `width` in percent, 0 for a link that limits nothing; `is_cut` where it goes on further.

    `order` is 1 for the link that stops the ask first, then 2 and so on; None for one that lets it through.
    """

    link: Link
    width: float
    is_cut: bool
    order: int | None

    @property
    def tone(self) -> str:
        """The hue of its mark."""
        if self.link.room is None:
            return "past"
        return "good" if self.order is None else "bad" if self.order == 1 else "ending"

    @property
    def words(self) -> str:
        """What it does to the ask."""
        if self.link.room is None:
            return "limits nothing"
        if self.order is None:
            return "lets it through"
        return "stops it" if self.order == 1 else "would stop it next"


def bars(chain: Sequence[Link], more: int) -> tuple[Bar, ...]:
    """The links from the subscription down, drawn for an ask of so many GPUs more."""
    order = {one.layer: place for place, one in enumerate(blocking(chain, more), 1)}
    whole = more * 100 / LINE_AT
    return tuple(
        Bar(
            link=one,
            width=0
            if one.room is None
            else max(MIN_WIDTH, min(100.0, percent(one.room, whole))),
            is_cut=one.room is not None and one.room > whole,
            order=order.get(one.layer),
        )
        for one in chain
    )
