"""Writes the tables of docs/reference from the code they describe: `make reference`."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import click
import yaml
from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from scripts.packages import ROOT
from tests.services import environment

environment.fill()

from accounts.roles import APP_ROLES, HOLDERS, Permission, Role  # noqa: E402 - settings first
from allocations.budgets.money import Left, by_month  # noqa: E402
from audit.events import Kind  # noqa: E402
from notices.channels.events import WebhookEvent  # noqa: E402
from policy.document import Thresholds  # noqa: E402
from policy.rules import Ask, Rule, Standing, applied  # noqa: E402
from portal.env import Environment  # noqa: E402
from qm import commands  # noqa: E402
from qm.endings import MEANINGS  # noqa: E402
from scripts import reference_words as words  # noqa: E402

METHODS = ("get", "post", "put", "patch", "delete")
FOLDER = ROOT / "docs" / "reference"
WRITTEN = (
    "<!-- Written by make reference. Change the code it comes from, not this file. -->"
)


def settings() -> str:
    """Every variable of the environment, from portal/env.py."""
    rows = []
    for name, field in Environment.model_fields.items():
        default = (
            "required"
            if field.is_required()
            else _value(field.get_default(call_default_factory=True))
        )
        rows.append((f"`QM_{name.upper()}`", default, words.SETTINGS[name]))
    return _page(
        "Settings",
        words.ABOUT_SETTINGS,
        _table(("variable", "default", "what it is"), rows),
        _table(("variable", "default", "what it is"), words.OUTSIDE_SETTINGS),
    )


def roles() -> str:
    """Roles, what they may do and where they come from, from accounts/roles.py."""
    holds = [(role, [p for p in Permission if role in HOLDERS[p]]) for role in Role]
    values = {role: value for value, role in APP_ROLES.items()}
    return _page(
        "Roles and permissions",
        words.ABOUT_ROLES,
        _table(
            (
                "role",
                "app role in Entra ID",
                "value in `QM_ROLE_GROUPS`",
                "permissions",
            ),
            [
                (
                    r.words,
                    f"`{values[r]}`",
                    f"`{r.value}`",
                    ", ".join(f"`{p.value}`" for p in ps) or "none of its own",
                )
                for r, ps in holds
            ],
        ),
        _table(
            ("permission", "what it allows", "held by"),
            [
                (
                    f"`{p.value}`",
                    words.PERMISSIONS[p.value],
                    _names(role.words for role in Role if role in HOLDERS[p]),
                )
                for p in Permission
            ],
        ),
    )


def audit_events() -> str:
    """Every kind of event, from audit/events.py."""
    rows = [(f"`{kind.value}`", str(kind.label)) for kind in Kind]
    return _page("Audit events", words.ABOUT_EVENTS, _table(("kind", "in words"), rows))


def policy() -> str:
    """The policy's rules and the thresholds of its first version, from policy/rules.py and document.py."""
    numbers = Thresholds()
    thresholds = [
        (
            f"`{field.name}`",
            _value(getattr(numbers, field.name)),
            words.THRESHOLDS[field.name],
        )
        for field in fields(Thresholds)
    ]
    return _page(
        "Policy",
        words.ABOUT_POLICY,
        _table(
            ("rule", "what it asks", "when it does not hold"),
            [_rule(rule) for rule in sample_rules()],
        ),
        words.ABOUT_THRESHOLDS,
        _table(("threshold", "at first", "what it limits"), thresholds),
    )


def sample_rules() -> tuple[Rule, ...]:
    """Every rule there is, as they are judged for an ask about which each of them has something to say."""
    now = datetime(2026, 11, 2, tzinfo=UTC)
    end = now + timedelta(days=1)
    left = Left(Decimal(12_000), Decimal(12_000), Decimal(8_000), Decimal(8_000))
    standing = Standing(
        now=now,
        held_gpus=1,
        free_gpus=8,
        total_gpus=8,
        use_percent=Decimal(90),
        recent_team_usd=Decimal(0),
        recent_person_usd=Decimal(0),
        unconfirmed_cost_centre="CC-1001",
        quota_left=8,
        quota_name="Standard NC vCPUs",
        budget={now.date().replace(day=1): left},
    )
    ask = Ask(
        count=1,
        starts=now + timedelta(hours=1),
        until=end,
        usd_per_hour_each=Decimal(1),
        environment="dev",
        flavor="a100",
        decided_by_people=True,
    )
    parts = by_month(gpus=1, usd_per_hour=Decimal(1), start=now, end=end)
    return tuple(
        applied(ask, standing, Thresholds(keep_free_gpus=1), parts, *parts.values())
    )


def addresses() -> str:
    """Every address of the API with its calls, from its committed description."""
    described = yaml.load(
        (FOLDER / "openapi.yaml").read_bytes(), Loader=yaml.CSafeLoader
    )["paths"]
    rows = [
        (
            f"`{path.removeprefix('/api/v1/')}`",
            method.upper(),
            _one_line(operation.get("description", "")),
        )
        for path, operations in described.items()
        for method, operation in operations.items()
        if method in METHODS
    ]
    return _page(
        "Addresses of the API",
        words.ABOUT_ADDRESSES,
        _table(("address", "call", "what it does"), rows),
    )


def webhooks() -> str:
    """Every event of webhooks with its data, from notices/channels/events.py and openapi.yaml."""
    described = yaml.safe_load((FOLDER / "openapi.yaml").read_text())
    schemas = described["components"]["schemas"]
    events = [(f"`{event.value}`", event.words) for event in WebhookEvent]
    parts = [words.ABOUT_WEBHOOKS, _table(("type", "when it is sent"), events)]
    for subject, title in words.WEBHOOK_SUBJECTS.items():
        fields = schemas[f"{subject.capitalize()}EventData"]["properties"]
        rows = [
            (f"`{name}`", _kind_of(field), _meaning(field))
            for name, field in sorted(fields.items(), key=lambda row: row[0] != "url")
        ]
        parts += [f"## {title}", _table(("field", "type", "what it is"), rows)]
    return _page("Events of webhooks", *parts)


def _kind_of(field: Mapping[str, Any]) -> str:
    """The type of a field in JSON's words."""
    if "$ref" in field:
        return "`{slug, name}`"
    kinds = [str(kind) for kind in [field.get("type", "string")]]
    if isinstance(field.get("type"), list):
        kinds = [str(kind) for kind in field["type"]]
    form = {"date-time": "time", "decimal": "decimal as text", "uri": "address"}
    first = form.get(str(field.get("format")), kinds[0])
    return " or ".join([first, *kinds[1:]])


def _meaning(field: Mapping[str, Any]) -> str:
    """What a field says, and the values that it may have."""
    said = str(field.get("description", ""))
    first = "" if said.startswith("* ") else _one_line(said)
    values = ", ".join(f"`{value}`" for value in field.get("enum", ()) if value)
    return " ".join(part for part in (first, values and f"One of {values}.") if part)


def qm() -> str:
    """Every command of the client with its options, from qm/commands, and its exit codes."""
    parts = [words.ABOUT_QM]
    for name, command in commands.qm.commands.items():
        context = click.Context(command, info_name=f"qm {name}", parent=None)
        records = [
            each.get_help_record(context)
            for each in command.params
            if isinstance(each, click.Option)
        ]
        rows = [
            (f"`{_cell(record[0])}`", _cell(record[1])) for record in records if record
        ]
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        parts += [
            f"## {context.command_path}",
            f"`{usage}`",
            inspect.cleandoc(str(command.help)),
            *([_table(("option", "what it is"), rows)] if rows else []),
        ]
    codes = [(f"{code:d}", said) for code, said in MEANINGS.items()]
    parts += ["## Exit codes", _table(("code", "what it means"), codes)]
    parts += ["## Environment", _table(("variable", "what it is"), words.QM_VARIABLES)]
    return _page("The command line", *parts)


def _cell(text: str) -> str:
    """A text of the command line as a cell of a table takes it."""
    return " ".join(text.split()).replace("|", "\\|")


def _one_line(text: str) -> str:
    """The first paragraph, as a cell of a table takes it."""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings,
    "addresses.md": addresses,
    "roles.md": roles,
    "audit-events.md": audit_events,
    "policy.md": policy,
    "qm.md": qm,
    "webhooks.md": webhooks,
}


def main() -> int:
    """Write every page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, write in PAGES.items():
        (FOLDER / name).write_text(write())
    return 0


def _rule(rule: Rule) -> tuple[str, str, str]:
    asks, otherwise = words.RULES[rule.code]
    return f"`{rule.code}`", asks, otherwise


def _names(names: Iterable[str]) -> str:
    return ", ".join(name.lower() for name in names)


def _value(value: Any) -> str:
    """A default as it would be written in the environment; `empty` for a text of nothing."""
    if value is None or value in ("", SecretStr(""), PydanticUndefined):
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list | dict):
        return "`" + str(value).replace("'", '"') + "`"
    return f"`{', '.join(value)}`" if isinstance(value, tuple) else f"`{value}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([WRITTEN, f"# {title}", *parts]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
