"""One look at everything: the books in one snapshot of the database, then the clusters, then what is to be told."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

import structlog
from django.db import connection, transaction

from accounts.models import DirectoryBrake
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from checks import allocations as holdings
from checks import decisions as decided
from checks import records as kept
from checks import secrecy, work
from checks.clusters import look_at_clusters
from checks.findings import BROKE, Finding, Report, broke

logger = structlog.get_logger(__name__)
Check = Callable[[datetime], Iterator[Finding]]
BOOKS: Mapping[str, Check] = {
    "I1": holdings.granted_once,
    "I2": holdings.desired_is_held,
    "I3": decided.has_a_record,
    "I4": holdings.books_agree,
    "I5": kept.log_is_whole,
    "I6": decided.is_where_its_record_says,
    "I7": work.is_worked_on,
    "I10": kept.keys_have_one_answer,
    "I11": holdings.has_ended,
    "I12": work.newest_wins,
    "I13": secrecy.no_secrets,
    "I14": work.ends_are_seen_to,
    "I15": kept.accepted_is_kept,
}
AZURE = "Azure: nothing was asked, because the portal buys nothing there by itself; I14 is checked in the books."
MOST_TOLD = 20
NO_CLUSTERS = "Clusters: not looked at, as you said; I8 and I9 were not checked."


def check(*, now: datetime, clusters: bool = True) -> Report:
    """Check every promise that can be checked here; writes nothing, and reads the books as of one moment."""
    report = Report(notes=[AZURE])
    with transaction.atomic():
        _at_one_moment()
        for promise, look in BOOKS.items():
            report.findings += _alone(promise, _in_a_savepoint(look), now)
            report.checked.add(promise)
    for brake in DirectoryBrake.objects.open():
        report.notes.append(
            f"Directory: not believed since {brake.at:%Y-%m-%d %H:%M} UTC. {brake.reason}"
        )
    report.findings += _alone("I16", work.reads_are_answered, now)
    report.checked.add("I16")
    if clusters:
        look_at_clusters(report, now=now)
    else:
        report.notes.append(NO_CLUSTERS)
    return report


def _alone(promise: str, look: Check, now: datetime) -> list[Finding]:
    """What one check finds; one that breaks is a finding itself, and keeps no other from being made."""
    try:
        return list(look(now))
    except Exception as error:
        logger.exception("check broke", promise=promise)
        return [Finding(promise, "The check itself", broke(error), BROKE)]


def _in_a_savepoint(look: Check) -> Check:
    """The check, such that a query that fails does not end the transaction for those that follow."""

    def looked(now: datetime) -> Iterator[Finding]:
        with transaction.atomic():
            yield from look(now)

    return looked


def tell(report: Report) -> None:
    """Write what was found into the log and the audit log, so that it is not only said to who asked."""
    for finding in report.findings:
        logger.error(
            "invariant broken",
            promise=finding.promise,
            subject=finding.subject,
            words=finding.words,
        )
    if report.findings:
        said = [str(finding) for finding in report.findings[:MOST_TOLD]]
        with transaction.atomic():
            record(
                Kind.INVARIANTS_BROKEN,
                actor=PORTAL,
                promises=report.by_promise(),
                findings=said,
            )


def _at_one_moment() -> None:
    """See the database as it is now until the end of the transaction, whatever others commit meanwhile."""
    if connection.vendor == "postgresql" and len(connection.savepoint_ids) == 0:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
