import secrets
from typing import Any

from django.db import migrations, models


def make(apps: Any, editor: Any) -> None:
    """The mark of this portal."""
    apps.get_model("provisioning", "Installation").objects.create(id=1, mark=secrets.token_hex(4))


class Migration(migrations.Migration):
    dependencies = [
        ("provisioning", "0007_commits"),
    ]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("mark", models.CharField(max_length=16)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="there_is_one_installation")
                ],
            },
        ),
        migrations.RunPython(make, migrations.RunPython.noop),
    ]
