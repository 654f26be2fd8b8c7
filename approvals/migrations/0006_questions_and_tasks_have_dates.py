"""Until when a question may be answered and a task carried out; what is to be done already is due from now on."""

from datetime import timedelta
from typing import Any

from django.db import migrations, models
from django.utils import timezone

TARGET = timedelta(hours=24)


def give_dates(apps: Any, schema_editor: Any) -> None:
    """Let the clock of unfinished tasks begin now, so that an upgrade calls nothing late."""
    now = timezone.now()
    unfinished = apps.get_model("approvals", "Task").objects.filter(state__in=["open", "taken"])
    unfinished.update(due_at=now + TARGET, escalate_at=now + 2 * TARGET)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0005_teams_that_are_set_apart")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="answer_by",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="due_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="escalate_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="reminded_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="escalated_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(give_dates, migrations.RunPython.noop),
    ]
