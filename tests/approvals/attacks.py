"""An attack on every constraint of requests, decisions and policies, past every action; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from copy import copy
from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import F

from accounts.models import User
from approvals.models import Decision, Evaluation, Request, Rerouting, Revision, Step
from catalogue.models import OfferingSetting
from manual.models import Task
from policy.models import PolicyCancellation, PolicyDraft, PolicyVersion
from tests import factories
from tests.scene import DAY, NOW

Attack = Callable[[Any], Any]


def add(*rows: models.Model) -> None:
    """Insert past `save()`."""
    type(rows[0])._default_manager.bulk_create(rows)


def only(request: Request) -> models.QuerySet[Request]:
    """The queryset of one request."""
    return Request.objects.filter(pk=request.pk)


def vote(w: Any, by: User, **fields: Any) -> Decision:
    """A decision on what waits, written by nobody's action."""
    usual = {
        "content_version": 1,
        "verdict": "approve",
        "count": 8,
        "until": NOW + DAY,
        "at": NOW,
    }
    return Decision(request=w.waiting, requester=w.scene.ada, by=by, **(usual | fields))


def step(w: Any, **fields: Any) -> Step:
    """A third step of what waits, not opened yet."""
    usual = {
        "position": 2,
        "seat": "platform_leads",
        "label": "x",
        "plan": {},
        "escalate_to": "platform_leads",
    }
    return Step(request=w.waiting, version=1, **(usual | fields))


def task(w: Any, **fields: Any) -> Task:
    """A task that nobody has taken."""
    usual = {
        "team": w.scene.team,
        "wanted_by": w.scene.ada,
        "title": "a volume",
        "request_number": w.approved.pk,
    }
    return Task(**(usual | {"created_at": NOW} | fields))


def apart(w: Any, **fields: Any) -> Task:
    """A subscription that Priya wants somebody to make."""
    usual = {
        "kind": "set_apart",
        "team": w.scene.team,
        "tenancy": w.scene.tenancy,
        "wanted_by": w.scene.priya,
        "title": "for Vision",
        "created_at": NOW,
    }
    return Task(**(usual | fields))


def version(w: Any, **fields: Any) -> PolicyVersion:
    """A second policy that Priya wrote and Marcus put in force."""
    usual = {
        "number": 2,
        "document": {},
        "active_from": NOW + DAY,
        "why": "x",
        "proposed_by": w.scene.priya,
        "activated_by": w.scene.marcus,
    }
    return PolicyVersion(**(usual | fields))


def draft(w: Any, **fields: Any) -> PolicyDraft:
    """A draft of Priya's."""
    first = PolicyVersion.objects.get(number=1)
    usual = {
        "base": first,
        "document": {},
        "author": w.scene.priya,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return PolicyDraft(**(usual | fields))


def setting(**fields: Any) -> OfferingSetting:
    """How GPUs are offered."""
    return OfferingSetting(
        **({"key": "gpus", "gate": "approval", "position": 0} | fields)
    )


def rerouting(w: Any, **fields: Any) -> Rerouting:
    """What the first policy changed about who decides what waits, with an answer of its own."""
    first = w.waiting.evaluations.earliest("id")
    usual = {
        "content_version": 1,
        "at": NOW,
        "now_decide": [],
        "dropped": [],
        "request": w.waiting,
    }
    if "evaluation" not in fields:
        kept = (
            "request_id",
            "policy_id",
            "content_version",
            "at",
            "outcome",
            "answer",
            "inputs",
            "input_hash",
        )
        usual["evaluation"] = Evaluation.objects.create(
            **{name: getattr(first, name) for name in kept}
        )
    return Rerouting(policy=first.policy, **(usual | fields))


def one_answer_twice(w: Any) -> None:
    """Two changes of who decides by one answer: one refuses, the other routes."""
    answer = w.waiting.evaluations.earliest("id")
    add(rerouting(w, evaluation=answer), rerouting(w, evaluation=answer, refused="x"))


def decided_and_dropped(w: Any) -> None:
    """A step that is decided, and no longer needed."""
    w.waiting.steps.filter(position=0).update(done_at=NOW, dropped_at=NOW)


def one_seat_twice(w: Any) -> None:
    """Priya votes, and Marcus in Priya's seat."""
    first = w.waiting.steps.get(position=0)
    for by in (w.scene.priya, w.scene.marcus):
        add(vote(w, by, step=first, seat_of=w.scene.priya))


def one_person_twice(w: Any) -> None:
    """Two votes of one person on one version."""
    add(vote(w, w.scene.priya))
    add(vote(w, w.scene.priya, verdict="reject", count=None))


def revision_twice(w: Any) -> None:
    """The first version of what is asked, written again."""
    add(
        Revision(
            request=w.waiting,
            number=1,
            spec={},
            count=1,
            until=NOW + DAY,
            usd=1,
            by=w.scene.ada,
            at=NOW,
        )
    )


def copy_of(request: Request, **changed: Any) -> Request:
    """The same ask once more, not saved yet."""
    made = copy(request)
    made.pk, made._state.adding = None, True
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def rejected_then_approved(w: Any) -> None:
    """What people rejected, granted by a single write."""
    only(w.waiting).update(state="rejected", decided_at=NOW)
    only(w.waiting).update(
        state="approved", approved_count=1, approved_until=F("until"), decided_at=NOW
    )


def in_no_known_state(w: Any) -> None:
    """Another request, in a state that follows from its allocation and is never stored."""
    request = Request.objects.get(pk=w.waiting.pk)
    request.pk, request.state = None, "active"
    add(request)


def task_taken_up_again(w: Any) -> None:
    """A task that was done, open once more."""
    done = task(w, state="done", assignee=w.scene.priya, done_at=NOW)
    done.save()
    Task.objects.filter(pk=done.pk).update(state="open", assignee=None)


NAMED: Mapping[str, Attack] = {
    "a_request_asks_for_something": lambda w: only(w.waiting).update(count=0),
    "a_request_for_gpus_says_how_many_and_where": lambda w: only(w.waiting).update(
        gpus=0
    ),
    "a_request_is_for_a_known_offering": lambda w: only(w.waiting).update(
        offering="lunch"
    ),
    "a_request_ends_after_it_is_made": lambda w: only(w.waiting).update(
        until=F("created_at")
    ),
    "a_request_begins_before_it_ends": lambda w: only(w.waiting).update(
        starts_at=F("until")
    ),
    "a_request_is_in_a_known_state": in_no_known_state,
    "an_approval_says_how_many": lambda w: only(w.waiting).update(
        state="approved", approved_until=F("until"), decided_at=NOW
    ),
    "an_approval_says_until_when": lambda w: only(w.waiting).update(
        state="approved", approved_count=1, decided_at=NOW
    ),
    "nobody_is_given_longer_than_was_asked": lambda w: only(w.approved).update(
        approved_until=F("until") + DAY
    ),
    "what_is_shortened_ends_earlier_than_was_asked": lambda w: only(w.waiting).update(
        cut_until=F("until")
    ),
    "nobody_is_given_more_than_was_asked": lambda w: only(w.approved).update(
        approved_count=F("count") + 1
    ),
    "what_is_cut_is_fewer_than_was_asked": lambda w: only(w.waiting).update(
        cut_to=F("count")
    ),
    "a_version_is_written_once": revision_twice,
    "a_step_has_its_place": lambda w: add(step(w, position=0)),
    "a_step_is_opened_before_it_is_done": lambda w: Step.objects.filter(
        opened_at=None
    ).update(done_at=NOW),
    "somebody_decides_a_step": lambda w: add(step(w, quorum=0)),
    "what_is_decided_is_not_dropped": decided_and_dropped,
    "a_policy_routes_a_request_once": lambda w: add(rerouting(w), rerouting(w)),
    "a_policy_refuses_a_request_once": lambda w: add(
        rerouting(w, refused="x"), rerouting(w, refused="y")
    ),
    "an_open_step_has_its_moments": lambda w: Step.objects.filter(
        opened_at=None
    ).update(opened_at=NOW),
    "nobody_decides_their_own_request": lambda w: add(vote(w, w.scene.ada)),
    "nobody_stands_in_for_the_requester": lambda w: add(
        vote(w, w.scene.priya, seat_of=w.scene.ada)
    ),
    "one_vote_per_seat": one_seat_twice,
    "one_vote_per_person": one_person_twice,
    "an_approving_vote_says_how_many": lambda w: add(
        vote(w, w.scene.priya, count=None)
    ),
    "an_approving_vote_says_until_when": lambda w: add(
        vote(w, w.scene.priya, until=None)
    ),
    "two_people_put_a_policy_in_force": lambda w: add(
        version(w, activated_by=w.scene.priya)
    ),
    "a_draft_in_force_is_closed": lambda w: add(
        draft(w, became=PolicyVersion.objects.get(number=1))
    ),
    "an_offering_ends_in_a_known_way": lambda w: add(setting(when_over="never")),
    "grace_is_a_week_at_most": lambda w: add(setting(grace_hours=169)),
    "a_drain_is_30_days_at_most": lambda w: add(setting(drain_hours=721)),
    "one_renewal_waits_at_a_time": lambda w: Request.objects.bulk_create(
        copy_of(w.waiting, renews=w.approved, hold=factories.hold(w.scene.team))
        for _ in range(2)
    ),
    "only_what_is_approved_is_allocated": lambda w: only(w.waiting).update(
        allocation=w.allocation
    ),
    "a_renewal_is_of_gpus_of_an_earlier_request": lambda w: only(w.waiting).update(
        renews=w.waiting
    ),
    "an_offering_is_known": lambda w: add(setting(key="lunch")),
    "an_offering_has_a_known_gate": lambda w: add(setting(gate="none")),
    "a_request_has_one_task_of_a_kind": lambda w: add(task(w), task(w)),
    "a_task_is_of_a_known_kind": lambda w: add(task(w, kind="lunch")),
    "a_team_is_set_apart_once_at_a_time": lambda w: add(apart(w), apart(w)),
    "a_task_is_somebodys_once_taken": lambda w: add(task(w, state="taken")),
}
UNIQUE: Mapping[str, Attack] = {
    "policy.PolicyVersion.number": lambda w: add(
        version(w, number=1, active_from=NOW + timedelta(days=1))
    ),
    "policy.PolicyCancellation.version": lambda w: add(
        *(
            PolicyCancellation(
                version=PolicyVersion.objects.get(number=1),
                by=w.scene.priya,
                at=NOW,
                why="x",
            )
            for _ in range(2)
        )
    ),
    "policy.PolicyDraft.became": lambda w: add(
        *(
            draft(w, became=PolicyVersion.objects.get(number=1), closed_at=NOW)
            for _ in range(2)
        )
    ),
    "approvals.Rerouting.evaluation": one_answer_twice,
    "approvals.Request.hold": lambda w: only(w.waiting).update(hold=w.approved.hold_id),
    "approvals.Request.allocation": lambda w: only(
        w.other_allocation.hold.request
    ).update(allocation=w.allocation),
    "catalogue.OfferingSetting.key": lambda w: add(setting(), setting()),
}
ALSO: Mapping[str, Attack] = {
    "an approval of none": lambda w: only(w.approved).update(approved_count=0),
    "an approval that takes its number back": lambda w: only(w.approved).update(
        approved_count=None
    ),
    "an approval that takes its end back": lambda w: only(w.approved).update(
        approved_until=None
    ),
    "an approval that ends before it is made": lambda w: only(w.approved).update(
        approved_until=F("created_at")
    ),
    "a shorter time that ends before it begins": lambda w: only(w.waiting).update(
        starts_at=F("until") - DAY / 2, cut_until=F("until") - DAY
    ),
    "a decided request that waits again": lambda w: only(w.approved).update(
        state="waiting", approved_count=None, approved_until=None
    ),
    "an approved request that is withdrawn": lambda w: only(w.approved).update(
        state="withdrawn", approved_count=None, approved_until=None
    ),
    "a rejected request that is approved": rejected_then_approved,
    "a rejection that gives": lambda w: only(w.approved).update(state="rejected"),
    "an approval without a moment": lambda w: only(w.approved).update(decided_at=None),
    "a rejection of one's own request": lambda w: add(
        vote(w, w.scene.ada, verdict="reject", count=None)
    ),
    "an approving vote for none": lambda w: add(vote(w, w.scene.priya, count=0)),
    "GPUs without a place": lambda w: only(w.waiting).update(tenancy=None),
    "a policy that nobody wrote": lambda w: add(version(w, proposed_by=None)),
    "a policy that nobody put in force": lambda w: add(version(w, activated_by=None)),
    "a task taken up again": task_taken_up_again,
    "a task for a request and a tenancy": lambda w: add(
        task(w, tenancy=w.scene.tenancy)
    ),
    "a subscription that nobody wants": lambda w: add(apart(w, wanted_by=None)),
    "an open task of somebody": lambda w: add(task(w, assignee=w.scene.priya)),
    "a task done by nobody": lambda w: add(task(w, state="done", done_at=NOW)),
    "a task done at no time": lambda w: add(
        task(w, state="failed", assignee=w.scene.priya)
    ),
}
