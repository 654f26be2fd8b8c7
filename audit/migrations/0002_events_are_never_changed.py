"""The audit log is only added to."""

from django.db import migrations

from audit.append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_events_are_chained")]

    operations = [append_only("audit_event", words="audit events")]
