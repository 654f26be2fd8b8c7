"""What no flavor of the queue fits: taints, node labels, resources, and pods that must be close together. Pure."""

from collections.abc import Callable, Mapping

from fleet.names import profile_of, slice_words
from workloads.explanations import Action, Answer, Outlook, Step
from workloads.observed import Facts
from workloads.reasons.messages import Cause, Kind
from workloads.reasons.words import pods, use_elsewhere

CHANGE_RUN = "Change the run"


def no_fit(cause: Cause, facts: Facts) -> Answer:
    """The answer to a cause that is about the nodes and not about how much is used."""
    return ANSWERS[cause.kind](cause, facts)


def _tainted(cause: Cause, facts: Facts) -> Answer:
    return Answer(
        code="taint_not_tolerated",
        outlook=Outlook.CHANGE,
        what=f"The nodes of {facts.title(cause.flavor)} take only pods that tolerate the taint {cause.resource}.",
        do="Add that toleration to the pods, or run it on another kind of GPU.",
        step=use_elsewhere(facts)
        or Step(Action.CHANGE_RUN, CHANGE_RUN, {"toleration": cause.resource}),
        detail=cause.message,
    )


def _labelled(cause: Cause, facts: Facts) -> Answer:
    return Answer(
        code="node_labels_differ",
        outlook=Outlook.CHANGE,
        what=f"Its pods ask for node labels that the nodes of {facts.title(cause.flavor)} do not have.",
        do="Take the node selector or the affinity out of the pods, or correct it.",
        step=use_elsewhere(facts)
        or Step(Action.CHANGE_RUN, CHANGE_RUN, {"field": "nodeSelector"}),
        detail=cause.message,
    )


def _uncovered(cause: Cause, facts: Facts) -> Answer:
    profile = profile_of(cause.resource)
    wanted = f"{slice_words(profile)}s" if profile else cause.resource
    return Answer(
        code="resource_not_offered",
        outlook=Outlook.CHANGE,
        what=f"It asks for {wanted}, which your queue does not give at all.",
        do="Take it out of what the pods ask for, or run it on another cluster.",
        step=use_elsewhere(facts)
        or Step(Action.CHANGE_RUN, CHANGE_RUN, {"resource": cause.resource}),
        detail=cause.message,
    )


def _unknown_flavor(cause: Cause, facts: Facts) -> Answer:
    return Answer(
        code="queue_broken",
        outlook=Outlook.ESCALATE,
        what=f"Your queue names a kind of GPU, {cause.flavor}, that the cluster does not know.",
        do="A platform lead mends the queue.",
        in_line=True,
        stands_still=True,
        detail=cause.message,
    )


def _crowded(cause: Cause, facts: Facts) -> Answer:
    return Answer(
        code="no_room_together",
        outlook=Outlook.WAIT,
        what=f"Its {pods(cause.pods)} must run close together; beside what runs now, {_at_most(cause)}.",
        do="Wait: it starts when enough nodes that lie close together are free.",
        in_line=True,
        step=use_elsewhere(facts),
        detail=cause.message,
    )


def _scattered(cause: Cause, facts: Facts) -> Answer:
    away = {one.name for one in facts.nodes if one.is_cordoned or not one.is_ready}
    what = f"Its {pods(cause.pods)} must run close together, and {_at_most(cause)}."
    if away:
        return Answer(
            code="nodes_away",
            outlook=Outlook.ESCALATE,
            what=f"{what} {len(away)} of the cluster's nodes take no pods now.",
            do="A platform lead brings those nodes back; or let the pods be spread.",
            in_line=True,
            detail=cause.message,
        )
    return Answer(
        code="never_together",
        outlook=Outlook.CHANGE,
        what=what,
        do="Run it with fewer pods, or let them be spread over more of the network.",
        step=Step(
            Action.CHANGE_RUN,
            "Change how close its pods must be",
            {"field": "topology"},
        ),
        detail=cause.message,
    )


def _at_most(cause: Cause) -> str:
    if not cause.fit:
        return "none of them fits"
    return "only 1 fits" if cause.fit == 1 else f"only {cause.fit} fit"


def _levelless(cause: Cause, facts: Facts) -> Answer:
    return Answer(
        code="unknown_topology",
        outlook=Outlook.CHANGE,
        what=f"It asks for pods close together in a way that {facts.title(cause.flavor)} does not know.",
        do="Name a level of the cluster's topology, or none.",
        step=Step(
            Action.CHANGE_RUN,
            "Change how close its pods must be",
            {"field": "topology"},
        ),
        detail=cause.message,
    )


ANSWERS: Mapping[Kind, Callable[[Cause, Facts], Answer]] = {
    Kind.CROWDED: _crowded,
    Kind.SCATTERED: _scattered,
    Kind.TAINTED: _tainted,
    Kind.LABELLED: _labelled,
    Kind.LEVELLESS: _levelless,
    Kind.UNKNOWN_FLAVOR: _unknown_flavor,
    Kind.UNCOVERED: _uncovered,
}
