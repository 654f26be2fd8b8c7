"""Which of the four levels of isolation fits, from three questions; and what the levels are. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level of isolation as people compare it; `value` is what a tenancy stores."""

    value: str
    name: str
    best_for: str
    reaches: str
    costs: str
    ready: str
    neighbours: str
    runs: str


LEVELS = (
    Level(
        value="namespace",
        name="Own namespace",
        best_for="Teams that trust each other and share a cluster.",
        reaches="A broken-out container or a cluster fault reaches everybody on the cluster.",
        costs="Least: idle GPUs are lent to whoever waits.",
        ready="Seconds, by yourself.",
        neighbours="Share nodes, disks’ speed and the control plane; quota and priorities keep the peace.",
        runs="The platform team runs one cluster for all.",
    ),
    Level(
        value="node-pool",
        name="Own nodes",
        best_for="Teams that need a kind of GPU or its full speed alone.",
        reaches="The team’s own nodes; a fault of the control plane still reaches everybody.",
        costs="More: what the team leaves idle on its nodes is lent to nobody else.",
        ready="Hours to days: somebody adds the nodes.",
        neighbours="None on the nodes. The control plane and the network are shared.",
        runs="The platform team runs one cluster, with more pools.",
    ),
    Level(
        value="cluster",
        name="Own cluster",
        best_for="Teams under other compliance rules than the rest.",
        reaches="The team’s own cluster: its control plane, versions and cluster-wide kinds.",
        costs="Much more: a control plane and spare nodes of its own, and nothing to borrow.",
        ready="Days: asked for, approved, and built by a person.",
        neighbours="None on the cluster. Azure’s quota and limits are shared.",
        runs="The platform team upgrades and watches one more cluster.",
    ),
    Level(
        value="subscription",
        name="Own subscription",
        best_for="Regulated work, or a bill of its own.",
        reaches="The team’s own subscription: its identities, network and quota as well.",
        costs="Most: a cluster of its own, and quota that is granted to it alone.",
        ready="Weeks: billing, network and quota are arranged by people.",
        neighbours="None.",
        runs="The platform team, with those who run billing and network.",
    ),
)
ORDER = [level.value for level in LEVELS]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, its answers, and what each answer asks for: a level and a reason; the first asks for nothing."""

    key: str
    text: str
    answers: Mapping[str, tuple[str, str, str]]

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The answers for a form."""
        return [(value, words) for value, (words, _, _) in self.answers.items()]


QUESTIONS = (
    Question(
        key="rules",
        text="Which rules does the data come under?",
        answers={
            "ordinary": ("The company’s ordinary ones", "namespace", ""),
            "compliance": (
                "Rules of its own: it may not share a cluster",
                "cluster",
                "Data under rules of its own does not share a control plane with other teams.",
            ),
            "regulated": (
                "Regulated by law or contract, with audits",
                "subscription",
                "Regulated work keeps identities, network and logs in a subscription that can be audited alone.",
            ),
        },
    ),
    Question(
        key="payer",
        text="Who pays?",
        answers={
            "shared": ("Our cost centre, from the shared bill", "namespace", ""),
            "separate": (
                "We need an invoice of our own",
                "subscription",
                "Azure writes one bill for a subscription; labels divide costs, not invoices.",
            ),
        },
    ),
    Question(
        key="neighbours",
        text="Can the work bear neighbours on its nodes?",
        answers={
            "yes": ("Yes, quota and priorities are enough", "namespace", ""),
            "no": (
                "No, it needs GPUs or speed to itself",
                "node-pool",
                "Nodes with a taint of their own take nobody else’s jobs, so nobody slows them down.",
            ),
        },
    ),
)
KEYS = tuple(question.key for question in QUESTIONS)
TRUSTED = "Nothing speaks against sharing: a namespace has its own quota, queue, network rules and rights."


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The level that the answers ask for, and why; `is_self_service` when nobody else has to do anything."""

    level: Level
    reasons: tuple[str, ...]

    @property
    def is_self_service(self) -> bool:
        """Whether it is there as soon as the team is."""
        return self.level.value == "namespace"


def recommend(answers: Mapping[str, str]) -> Recommendation:
    """The least level that every answer is content with; a question without an answer asks for nothing.

    Only reasons for that level are given: a cluster of its own has its own nodes as well.
    """
    asked = [
        (level, why)
        for question in QUESTIONS
        for _, level, why in [
            question.answers.get(answers.get(question.key, ""), ("", "namespace", ""))
        ]
        if why
    ]
    highest = max((ORDER.index(level) for level, _ in asked), default=0)
    reasons = tuple(why for level, why in asked if ORDER.index(level) == highest)
    return Recommendation(level=LEVELS[highest], reasons=reasons or (TRUSTED,))
