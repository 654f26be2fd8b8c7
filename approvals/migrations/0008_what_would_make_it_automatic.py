"""Each answer keeps what would have made it automatic."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0007_namespaces_for_production")]

    operations = [
        # Without a default: SQLite then adds the column as it is, and the table's triggers stay.
        migrations.AddField("evaluation", "remedies", models.JSONField(null=True)),
    ]
