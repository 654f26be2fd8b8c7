"""What a check says: which promise does not hold, of what, in words, and what to do about it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PROMISES: Mapping[str, str] = {
    "I1": "Nothing is granted twice, and nothing stands twice on a cluster",
    "I2": "Quotas are the sum of what is held",
    "I3": "Nothing is approved without a record",
    "I4": "No budget is overspent, and the ledger agrees with it",
    "I5": "The audit log is whole, chained and guarded",
    "I6": "Only legal states, and none for longer than its limit",
    "I7": "Whatever is due is being worked on",
    "I8": "What is called true is true: another pass would write nothing",
    "I9": "No strays on clusters, and nothing of others touched",
    "I10": "One effect for each idempotency key",
    "I11": "What has reached its end has ended",
    "I12": "The newest worker wins",
    "I13": "No secret in any record",
    "I14": "Nothing is paid for past its end",
    "I15": "What was accepted is kept",
    "I16": "Reads are answered",
}


BROKE = "The log has the trace: report it, and read the other findings as usual."


def broke(error: Exception) -> str:
    """What a finding says of a check that ended by itself, so that the others are made all the same."""
    return f"It could not be checked: {type(error).__name__}."


@dataclass(frozen=True)
class Finding:
    """One promise that does not hold: of what, what was seen, and what a person can do."""

    promise: str
    subject: str
    words: str
    todo: str

    def __str__(self) -> str:
        return f"{self.promise} {self.subject}: {self.words} {self.todo}"


@dataclass
class Report:
    """What a check found; `notes` say what could not be looked at, and why. They are no findings."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)

    def by_promise(self) -> dict[str, int]:
        """How many findings there are of each promise that does not hold."""
        return {
            p: n for p in PROMISES if (n := sum(f.promise == p for f in self.findings))
        }
