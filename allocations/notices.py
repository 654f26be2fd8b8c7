"""What people are told about budgets, about ends, and about work that outlives them."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.urls import reverse

from accounts.models import User
from allocations.models import Allocation, Brake, Budget, Leftover, StoppedWork
from allocations.schedule import IN_AZURE, kept_by
from notices.actions import tell
from notices.kinds import NoticeKind
from notices.message import Message
from provisioning.models import Tenancy
from ui.amounts import ahead, dated_moment, gpus, hours, jobs, moment, usd


def close_message(budget: Budget) -> Message:
    """That a month's budget, read with its team, has reached its soft stage, and what that means."""
    facts = [
        ("Set aside", f"{usd(budget.held_usd)} of {usd(budget.limit_usd)}"),
        ("Left", usd(budget.left_usd)),
    ]
    if budget.gpu_hours_limit is not None and budget.left_gpu_hours is not None:
        facts += [
            (
                "GPU-hours",
                f"{hours(budget.held_gpu_hours)} of {hours(budget.gpu_hours_limit)}",
            ),
            ("GPU-hours left", hours(budget.left_gpu_hours)),
        ]
    part = budget.closest
    what = f"{part} of {budget.month:%B %Y} {'is' if part == 'budget' else 'are'} set aside"
    return Message(
        title=f"{budget.team.name}: {budget.percent_held} % of the {what}",
        sentence=f"{budget.stage_words} What is given back is free again.",
        facts=tuple(facts),
        action="Open the budget",
    )


def tell_taken_back(row: Allocation, *, by: str, now: datetime) -> None:
    """Tell the members of a team that a platform lead took back what they held, and why."""
    say = Message(
        title=f"Taken back: {row.what} of {row.team.name}",
        sentence=f"{by} took this back for the platform: {row.taken_back_because}",
        facts=(("Team", row.team.name), ("Was to end", moment(row.until, now))),
        action="Open the team",
    )
    tell(
        NoticeKind.ALLOCATION_ENDING,
        to=User.objects.filter(memberships__team=row.team_id),
        subject=("allocation", row.pk),
        link=reverse("team", args=[row.team.slug]),
        message=say,
        now=now,
    )


def tell_given_back(row: Allocation, *, by: str, now: datetime) -> None:
    """Tell who asked for something that somebody else of their team gave it back."""
    say = Message(
        title=f"{by} gave back {row.what} of {row.team.name}",
        sentence="You had asked for it. New work gets only what the team still holds; you can ask again at any time.",
        facts=(("Team", row.team.name), ("Was to end", moment(row.until, now))),
        action="Open the team",
    )
    tell(
        NoticeKind.ALLOCATION_ENDING,
        to=[row.requester],
        subject=("allocation", row.pk),
        link=reverse("team", args=[row.team.slug]),
        message=say,
        now=now,
    )


class WayOn(NamedTuple):
    """How what ends soon goes on: in a sentence, as the button of a notice, and where that leads."""

    sentence: str
    action: str
    link: str


def ending_notice(row: Allocation, *, now: datetime) -> tuple[Message, str]:
    """That an allocation ends soon, what follows, and how it goes on; and the page on which it does."""
    facts = [("Team", row.team.name), ("Ends", moment(row.until, now))]
    if row.where:
        facts.insert(
            1, ("Cluster" if row.tenancy_id is not None else "Region", row.where)
        )
    facts += [
        (step.words, moment(step.at, now))
        for step in row.next_steps(now)
        if step.what not in ("reminder", "end")
    ]
    facts.append(("Cost a day", usd(row.usd_per_day)))
    ends, way = "ends" if row.flavor is None else "end", _way_on(row)
    message = Message(
        title=f"{row.what} of {row.team.name} {ends} in {ahead(row.until, now)}",
        sentence=way.sentence,
        facts=tuple(facts),
        action=way.action,
    )
    return message, way.link


def _way_on(row: Allocation) -> WayOn:
    team = reverse("team", args=[row.team.slug])
    if row.flavor is None:
        without = (
            "the portal deletes it in Azure"
            if row.provisioner in IN_AZURE
            else "a platform lead asks, then takes it down"
        )
        words = f"{kept_by(row.offering)} Without that {without}."
        return WayOn(words, "Open the team", team)
    if renewal := row.hold.renewal_id:
        words = (
            f"Request {renewal} to keep them longer waits for a decision. Unless it is approved before, they go back "
            "to the pool by themselves."
        )
        return WayOn(words, "Open the request", reverse("request", args=[renewal]))
    if row.why_not_kept:
        words = f"They cannot be kept longer: {row.why_not_kept}. Ask for GPUs elsewhere before that."
        return WayOn(words, "Open the team", team)
    words = (
        "Keep them longer with one click, judged at once by the same rules as any request. Without it they go back to "
        "the pool by themselves."
    )
    return WayOn(words, "Keep them longer", reverse("renew", args=[row.pk]))


def left_message(
    tenancy: Tenancy, left: Sequence[Leftover], *, now: datetime
) -> Message:
    """That work still runs on GPUs that are no longer held, and what becomes of it; `left` is of one flavor."""
    row, work = left[0], left[0].running
    listed = _work_facts([(one["job"], sum(one["gpus"].values())) for one in work])
    return Message(
        title=f"{jobs(len(work))} still {'uses' if len(work) == 1 else 'use'} GPUs that are no longer held",
        sentence=fate(left, now=now),
        facts=(
            ("Team", tenancy.team.name),
            ("Cluster", row.flavor.cluster.title),
            *listed,
        ),
        action="Open the team",
    )


def stopped_message(tenancy: Tenancy, rows: Sequence[StoppedWork]) -> Message:
    """That work was stopped, which, and what can be done."""
    return Message(
        title=f"{jobs(len(rows))} {'was' if len(rows) == 1 else 'were'} stopped",
        sentence="The GPUs are no longer held, and the time to finish is over. Nothing was deleted: ask for GPUs, "
        "then start the work again.",
        facts=(
            ("Team", tenancy.team.name),
            *_work_facts([(row.job, row.gpus) for row in rows]),
        ),
        action="Open the team",
    )


def refused_message(row: StoppedWork, tenancy: Tenancy, why: str) -> Message:
    """That the cluster lets the portal stop nothing, for those who can change that."""
    return Message(
        title=f"{row.job} could not be stopped on {tenancy.cluster.title}",
        sentence=f"The GPUs are no longer held, and the time to finish is over. The cluster says: {why} It "
        "is tried again every half minute.",
        facts=(("Team", tenancy.team.name), *_work_facts([(row.job, row.gpus)])),
        action="Open the team",
    )


def held_back_message(brake: Brake) -> Message:
    """That so many holdings are due at once that a person must look."""
    return Message(
        title=f"{brake.due} of {brake.live} holdings would end at once",
        sentence="That is more than usual, and a wrong clock looks the same. Nothing of it ends before a platform lead "
        "says that the clock is right.",
        facts=(("The portal's clock", dated_moment(brake.clock)),),
        action="Look at them",
    )


def fate(left: Sequence[Leftover], *, now: datetime) -> str:
    """What becomes of work on GPUs that are no longer held, in a sentence."""
    first = min((row.stop_at for row in left if row.stop_at is not None), default=None)
    trouble = next((row.trouble for row in left if row.trouble), "")
    if first is not None and trouble:
        return f"It could not be stopped, and is tried again: {trouble}"
    if first is not None and first <= now:
        return "It is being stopped."
    return fate_at(first, now=now)


def fate_at(stop_at: datetime | None, *, now: datetime) -> str:
    """What becomes of work beyond what is held that has to stop at `stop_at`; it may finish where that is None."""
    if stop_at is None:
        return "It may finish, while nobody else wants the GPUs."
    if stop_at <= now:
        return "What is too much is stopped at once, lowest priority and newest first."
    return f"What still runs on {moment(stop_at, now)} is stopped, lowest priority and newest first."


def team_link(slug: str) -> str:
    """The page of a team."""
    return reverse("team", args=[slug])


def _work_facts(work: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(job, gpus(count)) for job, count in work[:8]]
