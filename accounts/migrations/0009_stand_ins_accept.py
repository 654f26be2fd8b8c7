"""A stand-in accepts before it counts."""

from importlib import import_module
from typing import Any

from django.db import migrations, models
from django.db.models import Q

FIRST = import_module("accounts.migrations.0003_one_stand_in_at_a_time")


def guard_again(apps: Any, schema_editor: Any) -> None:
    """SQLite makes the table anew for the constraint, which loses the triggers."""
    if schema_editor.connection.vendor == "sqlite":
        FIRST.add(apps, schema_editor)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0008_cost_centres_are_confirmed")]

    operations = [
        migrations.AddField("delegation", "accepted_at", models.DateTimeField(null=True)),
        migrations.AddField("delegation", "declined_at", models.DateTimeField(null=True)),
        migrations.AddConstraint(
            "delegation",
            models.CheckConstraint(
                condition=Q(declined_at=None) | Q(accepted_at=None, ended_at__isnull=False),
                name="who_declined_never_stood_in",
            ),
        ),
        migrations.RunPython(guard_again, migrations.RunPython.noop),
    ]
