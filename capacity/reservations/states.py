"""How far a reservation has come, in words. Pure."""

from enum import StrEnum


class State(StrEnum):
    """How far a reservation has come. One that Azure refuses is released, with the reason."""

    PENDING = "pending"
    RESERVED = "reserved"
    RELEASING = "releasing"
    RELEASED = "released"

    @property
    def words(self) -> str:
        """As people read it."""
        return {
            "pending": "Being reserved",
            "reserved": "Reserved",
            "releasing": "Being released",
        }.get(self.value, "Released")

    @property
    def tone(self) -> str:
        """The badge's tone."""
        return {
            "pending": "moving",
            "reserved": "good",
            "releasing": "ending",
            "released": "past",
        }[self.value]


WANTED = frozenset({State.PENDING, State.RESERVED})
IN_AZURE = frozenset({*WANTED, State.RELEASING})


def machines_using(count: int) -> str:
    """What keeps a reservation from being released: "1 machine uses it", "2 machines use it"."""
    return "1 machine uses it" if count == 1 else f"{count} machines use it"
