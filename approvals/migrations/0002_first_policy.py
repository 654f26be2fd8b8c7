"""The policy every installation starts with; its numbers are those of approvals.policy.Thresholds."""

from datetime import UTC, datetime

from django.db import migrations

FIRST = {
    "automatic_gpus": 2,
    "automatic_days": 14,
    "automatic_usd": "1500",
    "automatic_gpus_in_window": 6,
    "window_days": 7,
    "leadership_gpus": 8,
    "automatic_environments": ["dev", "test"],
    "longest_days": 90,
}


def add(apps, schema_editor):
    apps.get_model("approvals", "PolicyVersion").objects.create(
        number=1,
        thresholds=FIRST,
        active_from=datetime(2026, 1, 1, tzinfo=UTC),
        why="The policy to start with.",
    )


def remove(apps, schema_editor):
    apps.get_model("approvals", "PolicyVersion").objects.filter(number=1).delete()


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_requests_and_decisions")]

    operations = [migrations.RunPython(add, remove)]
