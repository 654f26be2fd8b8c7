"""The offering of namespaces is for production, too, and is called by what it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0006_questions_and_tasks_have_dates"),
    ]

    operations = [
        migrations.AlterField(
            model_name="offeringsetting",
            name="key",
            field=models.CharField(
                choices=[
                    ("gpus", "GPUs"),
                    ("notebook", "Notebook"),
                    ("volume", "Dataset volume"),
                    ("namespace", "Namespace"),
                    ("training", "Large training"),
                    ("endpoint", "Production inference endpoint"),
                    ("openai", "Azure OpenAI endpoint"),
                    ("reservation", "Capacity reservation"),
                    ("cluster", "New cluster"),
                ],
                max_length=20,
                unique=True,
            ),
        ),
        migrations.AlterField(
            model_name="request",
            name="offering",
            field=models.CharField(
                choices=[
                    ("gpus", "GPUs"),
                    ("notebook", "Notebook"),
                    ("volume", "Dataset volume"),
                    ("namespace", "Namespace"),
                    ("training", "Large training"),
                    ("endpoint", "Production inference endpoint"),
                    ("openai", "Azure OpenAI endpoint"),
                    ("reservation", "Capacity reservation"),
                    ("cluster", "New cluster"),
                ],
                max_length=20,
            ),
        ),
    ]
