"""I3 and I6: every verdict has its record, and every request is where its record says."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from allocations.models import Allocation
from approvals.judging.inputs import hash_of
from approvals.models import Decision, Evaluation, Request
from approvals.states import State
from audit.events import Kind
from audit.models import Event
from checks.findings import Finding
from policy.evaluation import Outcome
from provisioning.models import Tenancy

BATCH = 500
LATE = timedelta(minutes=5)
UNSEEN = timedelta(minutes=10)
LOOK = "Read the request's events, and tell the developers."
ENDS = {
    Kind.REQUEST_APPROVED: State.APPROVED,
    Kind.REQUEST_REJECTED: State.REJECTED,
    Kind.REQUEST_WITHDRAWN: State.WITHDRAWN,
    Kind.REQUEST_LAPSED: State.LAPSED,
}


def has_a_record(now: datetime) -> Iterator[Finding]:
    """I3: votes of enough people who did not ask, or the policy's own verdict with what it looked at."""
    approved = Request.objects.filter(state=State.APPROVED).order_by("pk")
    for request in approved.prefetch_related(
        "decisions", "steps", "evaluations__policy"
    ).iterator(BATCH):
        for words in _missing(request):
            yield Finding("I3", request.reference, words, LOOK)
    known = {
        row.hold_id: row
        for row in approved.only("pk", "hold_id", "team_id", "flavor_id")
    }
    for held in Allocation.objects.live().described().order_by("pk"):
        asked = known.get(held.hold_id)
        if asked is None or (asked.team_id, asked.flavor_id) != (
            held.team_id,
            held.flavor_id,
        ):
            yield Finding(
                "I3",
                held.hold.reference,
                f"{held.what} is held and nobody approved it.",
                "Give it back.",
            )


def _missing(request: Request) -> Iterator[str]:
    votes = [
        vote
        for vote in request.decisions.all()
        if vote.verdict == Decision.Verdict.APPROVE
        and vote.content_version == request.content_version
    ]
    if any({vote.by_id, vote.seat_of_id} & {request.requester_id} for vote in votes):
        yield "Its own requester approved it."
    evaluations = [
        e
        for e in request.evaluations.all()
        if e.content_version == request.content_version
    ]
    if any(vote.by_id is None for vote in votes):
        yield from _wrong_in_policys(evaluations)
        return
    if not votes:
        yield "It is approved, and nobody decided."
    for step in request.current_steps:
        people = {vote.by_id for vote in votes if vote.step_id == step.pk}
        if step.done_at is None or len(people) < step.quorum:
            yield f"{len(people)} of {step.quorum} who should have approved it as {step.words} did."


def _wrong_in_policys(evaluations: Iterable[Evaluation]) -> Iterator[str]:
    newest = max(evaluations, key=lambda evaluation: evaluation.pk, default=None)
    if newest is None or newest.outcome != Outcome.AUTOMATIC:
        yield "The policy approved it without an answer that says so."
    elif newest.input_hash != hash_of(newest.inputs):
        yield "What the policy looked at was changed afterwards."


def is_where_its_record_says(now: datetime) -> Iterator[Finding]:
    """I6: one end at most, the one that is recorded; nothing waits past its date, nothing is forgotten on its way."""
    ends: dict[str, list[State]] = defaultdict(list)
    told = Event.objects.filter(
        subject_type="request", kind__in=ENDS, outcome=Event.Outcome.DONE
    )
    for subject, kind in (
        told.order_by("seq").values_list("subject_id", "kind").iterator()
    ):
        ends[subject].append(ENDS[Kind(kind)])
    for pk, state in (
        Request.objects.order_by("pk").values_list("pk", "state").iterator()
    ):
        seen = ends.get(str(pk), [])
        if seen != ([] if state == State.WAITING else [State(state)]):
            said = ", then ".join(end.words.lower() for end in seen) or "not decided"
            yield Finding(
                "I6",
                f"request-{pk}",
                f"It is {State(state).words.lower()}; its events say {said}.",
                LOOK,
            )
    yield from _stuck(now)


def _stuck(now: datetime) -> Iterator[Finding]:
    for request in Request.objects.overdue(now - LATE):
        yield Finding(
            "I6",
            request.reference,
            f"It should have lapsed at {request.lapses:%Y-%m-%d %H:%M} and still waits.",
            "See whether a worker with its clock runs, and what it logs of approvals.tasks.lapse.",
        )
    approved = Request.objects.filter(state=State.APPROVED, flavor__isnull=False)
    for pk in approved.filter(hold__allocations=None).values_list("pk", flat=True):
        yield Finding(
            "I6",
            f"request-{pk}",
            "It is approved, and no GPUs were ever held for it.",
            LOOK,
        )
    unseen = Tenancy.objects.filter(
        last_looked_at=None, changed_at__lte=now - UNSEEN, generation__gte=1
    )
    for tenancy in unseen:
        yield Finding(
            "I6",
            f"tenancy {tenancy.namespace}",
            "Nobody has looked at it since it was wanted.",
            "See whether a worker runs, and what it logs of this tenancy.",
        )
