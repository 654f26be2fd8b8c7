"""When people are told that a limit comes near: three stages, each told once until it was left behind. Pure."""

from enum import IntEnum

# Percent of a limit. Below a stage by so many points, it is told again when it is reached the next time.
HYSTERESIS = 5


class Stage(IntEnum):
    """How near a limit is, by the percent from which on it counts."""

    NONE = 0
    FILE_INCREASE = 60
    ALERT = 80
    HARD_STOP_NEAR = 95

    @property
    def words(self) -> str:
        """What it means for who reads it."""
        return {
            0: "",
            60: "Begin now what gives more: an increase takes days.",
            80: "Little is left.",
            95: "Almost nothing is left: the next ask may be stopped.",
        }[self.value]

    @property
    def title(self) -> str:
        """Its badge."""
        return {0: "Far", 60: "Ask for more", 80: "Little left", 95: "Almost reached"}[
            self.value
        ]

    @property
    def tone(self) -> str:
        """The hue of its badge."""
        return {0: "good", 60: "waiting", 80: "bad", 95: "bad"}[self.value]


def stage_of(percent: int) -> Stage:
    """The highest stage that so many percent of a limit have reached."""
    return max((stage for stage in Stage if percent >= stage), default=Stage.NONE)


def told_next(told: Stage, percent: int) -> tuple[Stage, bool]:
    """Which stage counts as told after a reading, and whether people are told of it now.

    What goes up is told at once. What goes down counts as told until it is well below, so that a limit which swings
    around a stage is told of once.
    """
    now = stage_of(percent)
    if now > told:
        return now, True
    kept = max(
        (stage for stage in Stage if stage <= told and percent > stage - HYSTERESIS),
        default=Stage.NONE,
    )
    return max(now, kept), False
