"""Who decides is read from the directory, people included who never signed in."""

from django.db import migrations, models


def who_is_there_has_signed_in(apps, schema_editor):
    apps.get_model("accounts", "User").objects.update(signed_in_at=models.F("created_at"))


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_team_owners"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="signed_in_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="SeatFill",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seat", models.CharField(max_length=60, unique=True)),
                ("words", models.CharField(max_length=200)),
                ("people", models.PositiveIntegerField(default=0)),
                ("read_at", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "ordering": ["seat"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("people", 0), ("read_at__isnull", False), _connector="OR"),
                        name="a_seat_is_filled_from_the_directory",
                    )
                ],
            },
        ),
        migrations.RunPython(who_is_there_has_signed_in, migrations.RunPython.noop),
    ]
