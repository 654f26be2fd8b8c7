"""Where the cause is put right for which a run did not begin, ran too short, or failed."""

from collections.abc import Mapping

from ui.parts import Link
from workloads.failures.causes import Code
from workloads.reasons.limits import MORE_TIME
from workloads.reasons.sources import CHANGE_SOURCE
from workloads.runs.models import Run
from workloads.runs.pages.steps import again_link
from workloads.runs.states import State

# Where on the form a cause is put right: the words of the link, and the name of the input.
FIELD_OF_CAUSE: Mapping[Code, tuple[str, str]] = {
    Code.GPU_MEMORY: ("Choose another kind of GPU", "flavor"),
    Code.GPU_KIND: ("Choose another kind of GPU", "flavor"),
    Code.MEMORY: ("Give it more memory", "memory"),
    Code.SHARED_MEMORY: ("Give it more memory", "memory"),
    Code.DRIVER: ("Choose another image", "image"),
    Code.NO_GPU: ("Change its GPUs or its image", "gpus"),
    Code.MODULE: ("Choose another image", "image"),
    Code.COMMAND: ("Choose another image", "image"),
    Code.FILE: ("Mount the volume that has it", "claims"),
    Code.DISK: ("Mount a volume with room", "claims"),
    Code.REFUSED: ("Give it a token from a Secret", "secrets"),
}


def mending_of(run: Run) -> Link | None:
    """Where the cause is put right of a run that never began, ran too short or failed; None where no form does that."""
    found = _label_and_field(run)
    if found is None:
        return None
    label, field = found
    form = again_link(run.team.slug, run.pk)
    return {"label": label, "href": f"{form}#id_{field}" if field else form}


def _label_and_field(run: Run) -> tuple[str, str] | None:
    """The words of the link and the name of the input; that is empty for the form as a whole."""
    has_failed = run.state == State.FAILED
    never_began = has_failed and run.started_at is None
    if run.state == State.REFUSED or (never_began and run.held_up):
        return "Change it and submit it again", ""
    if never_began and run.submission["repository"]:
        return CHANGE_SOURCE.label, "git_url"
    if run.was_stopped_at_limit:
        return MORE_TIME.label, "minutes"
    return FIELD_OF_CAUSE.get(Code(run.cause)) if run.cause else None
