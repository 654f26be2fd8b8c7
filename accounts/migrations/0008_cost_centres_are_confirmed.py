"""Cost centres have a list; those that teams have are confirmed, so that an upgrade stops nobody."""

from typing import Any

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models
from django.utils import timezone


def list_those_in_use(apps: Any, schema_editor: Any) -> None:
    """What is spent on already stays as it is."""
    now, rows = timezone.now(), apps.get_model("accounts", "CostCentre").objects
    for code in apps.get_model("accounts", "Team").objects.values_list("cost_centre", flat=True).distinct():
        if not rows.filter(code__iexact=code).exists():
            rows.create(code=code, created_at=now, confirmed_at=now)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_tokens_have_parents")]

    operations = [
        migrations.CreateModel(
            name="CostCentre",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("code", models.CharField(max_length=20)),
                ("created_at", models.DateTimeField()),
                ("confirmed_at", models.DateTimeField(null=True)),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="cost_centres",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["code"],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("code"), name="a_cost_centre_is_listed_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confirmed_by", None), ("confirmed_at__isnull", False), _connector="OR"
                        ),
                        name="who_confirmed_a_cost_centre_did_so_at_a_moment",
                    ),
                ],
            },
        ),
        migrations.RunPython(list_those_in_use, migrations.RunPython.noop),
    ]
