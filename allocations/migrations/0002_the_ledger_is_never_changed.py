"""What was set aside and let go stands for ever; a correction is another row."""

from django.db import migrations

from audit.append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("allocations", "0001_allocations_and_budgets")]

    operations = [append_only("allocations_hold", words="entries of the ledger")]
