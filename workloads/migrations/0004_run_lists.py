from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("workloads", "0003_templates"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["state", "-id"], name="run_of_state"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["name"], name="run_of_name"),
        ),
    ]
