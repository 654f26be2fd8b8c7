"""What workloads use of a tenancy, as its queue was read last."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("provisioning", "0001_tenancies"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenancy",
            name="used",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="tenancy",
            name="used_at",
            field=models.DateTimeField(null=True),
        ),
    ]
