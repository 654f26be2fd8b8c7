"""What the page of a run advises for the next one, from how well this one used its GPUs."""

from collections.abc import Iterator

from provisioning.stages import Stage
from ui.parts import Hint
from workloads.gpu_use.overall import Overall
from workloads.runs.models import Run
from workloads.runs.pages.steps import again_link
from workloads.runs.planning.places import kinds_of
from workloads.runs.planning.plan import are_together
from workloads.runs.planning.pools import Recommended
from workloads.runs.planning.right_size import (
    OwnKind,
    fewer_words,
    may_be_fewer,
    may_be_smaller,
    smaller_kind,
    smaller_words,
)
from workloads.template_desk.offered import offered
from workloads.templates.parameters import check


def next_size_of(run: Run, use: Overall, *, is_member: bool) -> list[Hint]:
    """Fewer GPUs, and a kind with less memory, where that follows; members get the links to the form.

    No query where nothing follows, and else three. `run` is of `described` rows.
    """
    if run.flavor is None or run.tenancy.stage != Stage.HERE:
        return []
    hints = [*_fewer(run, use), *_smaller(run, use)]
    return hints if is_member else [{"text": one["text"]} for one in hints]


def _fewer(run: Run, use: Overall) -> Iterator[Hint]:
    if may_be_fewer(use):
        yield {
            "text": fewer_words(use),
            "label": "Change and rerun with fewer GPUs",
            "href": f"{again_link(run.team.slug, run.pk)}#id_gpus",
        }


def _smaller(run: Run, use: Overall) -> Iterator[Hint]:
    had = _kind_of(run)
    if not may_be_smaller(use, had):
        return
    found = _smaller_kind(run, use, had)
    if found is not None:
        yield {
            "text": smaller_words(use, had, found),
            "label": f"Change and rerun with {found.pool.title}",
            "href": again_link(run.team.slug, run.pk, flavor=found.flavor),
        }


def _smaller_kind(run: Run, use: Overall, had: OwnKind) -> Recommended | None:
    """The kind to take; None where there is none, and for a template that nobody can submit any more."""
    template = offered().get(run.template)
    if template is None:
        return None
    held, open_to_team = kinds_of(run.tenancy)
    given = {k: v for k, v in run.submission["values"].items() if v not in (None, "")}
    return smaller_kind(
        use,
        had,
        held,
        open_to_team,
        template,
        are_together=are_together(check(template.parameters, given).values),
    )


def _kind_of(run: Run) -> OwnKind:
    """What the run had, at today's price."""
    flavor = run.flavor
    assert flavor is not None  # noqa: S101 - asked for only then
    return OwnKind(
        name=flavor.name,
        memory=flavor.memory_gb,
        usd_per_hour=flavor.price_per_gpu_hour,
        is_spot=flavor.is_spot,
    )
