"""Two further kinds of event, about cost centres.

SQLite makes the table anew for them, which would lose the triggers.
"""

from django.db import migrations, models

from audit.append_only import append_only
from audit.events import Kind

GUARD = append_only("audit_event", words="audit events")
KINDS = [kind.value for kind in Kind]


class Migration(migrations.Migration):
    dependencies = [("audit", "0010_refusals_that_are_no_events")]

    operations = [
        migrations.RunPython(GUARD.reverse_code, GUARD.code),
        migrations.RemoveConstraint(model_name="event", name="an_event_is_of_a_known_kind"),
        migrations.AlterField(
            model_name="event",
            name="kind",
            field=models.CharField(choices=Kind.choices, max_length=60),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=models.Q(kind__in=KINDS), name="an_event_is_of_a_known_kind"
            ),
        ),
        GUARD,
    ]
