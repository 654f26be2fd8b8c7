"""What a step of the main job expects, and how it fails."""


class StepFailed(Exception):
    """A step did not end as it should."""


def expect(holds: bool, message: str) -> None:
    """Raise StepFailed with the message when something does not hold."""
    if not holds:
        raise StepFailed(message)
