"""Until when a question may be answered."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0005_teams_that_are_set_apart")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="answer_by",
            field=models.DateTimeField(null=True),
        ),
    ]
