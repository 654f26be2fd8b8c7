"""How amounts, moments, spans and enumerations are written: on pages, in mails, in rules and over the API. Pure."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


def listed(names: Sequence[str]) -> str:
    """ "Ada", "Ada and Ben", "Ada, Ben and Lena"; empty for none."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def usd(amount: Decimal) -> str:
    """USD, half rounded up, cents only below $10 and only when there are some: "$1,233", "$3.67", "−$4"."""
    size = abs(amount)
    whole = size >= 10 or size == size.to_integral_value()
    rounded = size.quantize(Decimal(1) if whole else CENT, ROUND_HALF_UP)
    return f"{'−' if amount < 0 and rounded else ''}${rounded:,}"


def cents(amount: Decimal) -> str:
    """USD to the cent, as prices and limits are told: "$3.67", "$1,200.00"."""
    return f"${amount:,.2f}"


def rate(amount: Decimal) -> str:
    """USD for one of something, to the hundredth of a cent where it has that: "$3.67", "$1.80", "$0.526"."""
    exact = amount.quantize(Decimal("0.0001"), ROUND_HALF_UP)
    digits = max(2, 4 - (len(f"{exact:f}") - len(f"{exact:f}".rstrip("0"))))
    return f"${exact:,.{digits}f}"


def moment(at: datetime, now: datetime) -> str:
    """ "Fri 28 Nov, 18:00 UTC", with the year when it is not this year's."""
    at = at.astimezone(UTC)
    year = "" if at.year == now.astimezone(UTC).year else f" {at.year}"
    return f"{at:%a} {at.day} {at:%b}{year}, {at:%H:%M} UTC"


def dated_moment(at: datetime) -> str:
    """ "Fri 28 Nov 2026, 18:00 UTC": a moment that is told for good, so always with its year."""
    at = at.astimezone(UTC)
    return f"{at:%a} {at.day} {at:%b %Y, %H:%M} UTC"


def day(at: datetime, now: datetime) -> str:
    """ "Tue 24 Nov" in UTC, with the year when it is not this year's."""
    return moment(at, now).partition(",")[0]


def dated(on: date) -> str:
    """ "24 Nov 2026": a day that is told for good, so always with its year; of a moment, its day in UTC."""
    on = on.astimezone(UTC) if isinstance(on, datetime) else on
    return f"{on.day} {on:%b %Y}"


def span(length: timedelta) -> str:
    """The largest fitting unit alone: "40 s", "5 min", "3 h", "14 days"."""
    seconds = int(abs(length.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 48 * 3600 else f"{seconds // 86400} days"


def duration(length: timedelta) -> str:
    """ "5 minutes", "3 hours", "5 h 31 min", "14 days 1 h": to the minute, so that a price times it is the sum.

    A minute that is begun counts, so that nothing over a limit reads like it.
    """
    minutes = max(-(-int(length.total_seconds()) // 60), 1)
    if minutes < 60:
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    hours, minutes = divmod(minutes, 60)
    if hours < 48 and not minutes:
        return f"{hours} hour{'s' if hours > 1 else ''}"
    days, hours = divmod(hours, 24) if hours >= 48 else (0, hours)
    parts = {"days": days, "h": hours, "min": minutes}
    return " ".join(f"{number} {unit}" for unit, number in parts.items() if number)


def ago(at: datetime, now: datetime) -> str:
    """ "12 min ago"; "just now" within a minute."""
    return "just now" if now - at < timedelta(minutes=1) else f"{span(now - at)} ago"


def ahead(at: datetime, now: datetime) -> str:
    """How long until then, rounded: what ends in six days and 23 hours ends in "7 days"."""
    left = at - now
    half = timedelta(hours=12) if left >= timedelta(hours=47) else timedelta(minutes=30)
    return span(left + half) if left >= timedelta(hours=1) else span(left)


def gpus(count: int, product: str = "GPU") -> str:
    """ "1 GPU", "4 GPUs", "2 × A100"."""
    if product == "GPU":
        return f"{count} GPU" if count == 1 else f"{count} GPUs"
    return f"{count} × {product}"


def machines(count: int) -> str:
    """ "1 machine", "4 machines"."""
    return f"{count} machine" if count == 1 else f"{count} machines"


def jobs(count: int) -> str:
    """ "1 job", "3 jobs"."""
    return f"{count} job" if count == 1 else f"{count} jobs"


def share(part: int, whole: int) -> str:
    """ "17 %"; a whole of nothing has no shares."""
    return "–" if not whole else f"{round(100 * part / whole):,} %"


def size(quantity: str) -> str:
    """A quantity of Kubernetes as people write it: "100 GiB" of "100Gi"; any other as it is."""
    return re.sub(r"^(\d+)([KMGTP]i)$", r"\1 \2B", quantity)


def hours(amount: Decimal) -> str:
    """GPU-hours to two places where there are some: "1 GPU-hour", "1,200 GPU-hours", "2.5 GPU-hours"."""
    whole = amount == amount.to_integral_value()
    text = f"{amount:,.0f}" if whole else f"{amount:,.2f}".rstrip("0")
    return f"{text} GPU-hour" if amount == 1 else f"{text} GPU-hours"


def limits_words(
    limit_usd: Decimal, gpu_hours_limit: Decimal | None, soft_percent: int
) -> str:
    """A month's limits: "$12,000.00 and 500 GPU-hours, people decide beyond 80 %"."""
    more = "" if gpu_hours_limit is None else f" and {hours(gpu_hours_limit)}"
    return f"{cents(limit_usd)}{more}, people decide beyond {soft_percent} %"


def capitalized(text: str) -> str:
    """The same with a capital at its beginning, and nowhere else: "A notebook with 1 × T4"."""
    return f"{text[:1].upper()}{text[1:]}"
