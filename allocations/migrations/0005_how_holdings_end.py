"""How holdings end: reminders, grace, work that still runs, and the brake before many ends at once."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.models import F
from django.utils import timezone

from allocations.schedule import next_reminder


def keep_what_was_granted(apps, schema_editor):
    """What is held ends as it was granted: without grace; its reminders that are still ahead are sent."""
    Allocation = apps.get_model("allocations", "Allocation")
    Allocation.objects.update(kept_until=F("until"))
    now = timezone.now()
    for row in Allocation.objects.filter(ended_at=None, until__gt=now):
        row.remind_at = next_reminder(row.starts_at, row.until, after=now)
        row.save(update_fields=["remind_at"])


def grant_without_grace(apps, schema_editor):
    """The release before grants without saying until when it is kept, while both are at work: until its end."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("""
            CREATE FUNCTION kept_until_the_end() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.kept_until := NEW.until; RETURN NEW; END $$;
            CREATE TRIGGER kept_until_the_end BEFORE INSERT ON allocations_allocation
            FOR EACH ROW WHEN (NEW.kept_until IS NULL) EXECUTE FUNCTION kept_until_the_end()
        """)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER kept_until_the_end ON allocations_allocation")
        schema_editor.execute("DROP FUNCTION kept_until_the_end()")


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("allocations", "0004_days_of_use"),
        ("fleet", "0001_clusters_and_flavors"),
        ("provisioning", "0002_what_is_in_use"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Brake",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("clock", models.DateTimeField()),
                ("due", models.PositiveIntegerField()),
                ("live", models.PositiveIntegerField()),
                (
                    "answer",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("confirmed", "let them end"),
                            ("dismissed", "the clock was wrong"),
                            ("passed", "not needed any more"),
                        ],
                        max_length=10,
                    ),
                ),
                ("answered_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="Leftover",
            fields=[
                (
                    "allocation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="leftover",
                        serialize=False,
                        to="allocations.allocation",
                    ),
                ),
                ("reference", models.CharField(db_index=True, max_length=40)),
                ("gpus", models.PositiveIntegerField()),
                ("since", models.DateTimeField()),
                ("stop_at", models.DateTimeField(null=True)),
                ("running", models.JSONField(default=list)),
                ("seen_at", models.DateTimeField(null=True)),
                ("look_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
                ("trouble", models.CharField(blank=True, db_default="", default="", max_length=600)),
            ],
            options={
                "ordering": ["since", "allocation_id"],
            },
        ),
        migrations.CreateModel(
            name="StoppedWork",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=253)),
                ("job", models.CharField(max_length=320)),
                ("gpus", models.PositiveIntegerField()),
                ("asked_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["asked_at", "id"],
            },
        ),
        migrations.AddField(
            model_name="allocation",
            name="drain_hours",
            field=models.PositiveSmallIntegerField(default=0, db_default=0),
        ),
        migrations.AddField(
            model_name="allocation",
            name="grace_hours",
            field=models.PositiveSmallIntegerField(default=0, db_default=0),
        ),
        migrations.AddField(
            model_name="allocation",
            name="kept_until",
            field=models.DateTimeField(default=django.utils.timezone.now),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="allocation",
            name="remind_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="allocation",
            name="when_over",
            field=models.CharField(
                choices=[
                    ("finish", "it may finish, while nobody else wants the GPUs"),
                    ("drain", "it may go on for some hours, then it is stopped"),
                    ("stop", "it is stopped at once"),
                ],
                default="finish",
                max_length=8,
                db_default="finish",
            ),
        ),
        migrations.AlterField(
            model_name="allocation",
            name="end_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("expired", "reached its end date"),
                    ("returned", "was given back"),
                    ("replaced", "was given back in part"),
                    ("renewed", "goes on under a renewal"),
                ],
                max_length=12,
            ),
        ),
        migrations.RunPython(grant_without_grace, remove),
        migrations.RunPython(keep_what_was_granted, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name="allocation",
            index=models.Index(
                condition=models.Q(("ended_at", None)), fields=["kept_until"], name="allocation_goes_next"
            ),
        ),
        migrations.AddIndex(
            model_name="allocation",
            index=models.Index(
                condition=models.Q(("ended_at", None), ("remind_at__isnull", False)),
                fields=["remind_at"],
                name="allocation_reminds_next",
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.CheckConstraint(
                condition=models.Q(("kept_until__gte", models.F("until"))),
                name="an_allocation_is_kept_until_its_end",
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.CheckConstraint(
                condition=models.Q(("when_over__in", ["finish", "drain", "stop"])),
                name="an_end_is_of_a_known_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("remind_at", None), ("remind_at__lt", models.F("until")), _connector="OR"
                ),
                name="a_reminder_comes_before_the_end",
            ),
        ),
        migrations.AddField(
            model_name="brake",
            name="answered_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="leftover",
            name="flavor",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="fleet.flavor"
            ),
        ),
        migrations.AddField(
            model_name="leftover",
            name="tenancy",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="leftovers",
                to="provisioning.tenancy",
            ),
        ),
        migrations.AddField(
            model_name="stoppedwork",
            name="leftover",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="stopped", to="allocations.leftover"
            ),
        ),
        migrations.AddField(
            model_name="stoppedwork",
            name="tenancy",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="provisioning.tenancy"
            ),
        ),
        migrations.AddConstraint(
            model_name="brake",
            constraint=models.UniqueConstraint(
                condition=models.Q(("answer", "")), fields=("answer",), name="one_brake_is_on_at_a_time"
            ),
        ),
        migrations.AddConstraint(
            model_name="brake",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("answer", ""), ("answered_at", None), ("answered_by", None)),
                    models.Q(("answer", "passed"), ("answered_at__isnull", False), ("answered_by", None)),
                    models.Q(
                        ("answer__in", ["confirmed", "dismissed"]),
                        ("answered_at__isnull", False),
                        ("answered_by__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="a_brake_is_answered_by_a_person",
            ),
        ),
        migrations.AddIndex(
            model_name="leftover",
            index=models.Index(
                condition=models.Q(("done_at", None)), fields=["look_at"], name="leftover_looked_at_next"
            ),
        ),
        migrations.AddIndex(
            model_name="leftover",
            index=models.Index(
                condition=models.Q(("done_at", None)),
                fields=["tenancy", "flavor"],
                name="leftover_of_tenancy",
            ),
        ),
        migrations.AddConstraint(
            model_name="leftover",
            constraint=models.CheckConstraint(
                condition=models.Q(("gpus__gte", 1)), name="a_leftover_is_of_a_gpu"
            ),
        ),
        migrations.AddConstraint(
            model_name="leftover",
            constraint=models.CheckConstraint(
                condition=models.Q(("stop_at", None), ("stop_at__gte", models.F("since")), _connector="OR"),
                name="nothing_is_stopped_before_the_end",
            ),
        ),
        migrations.AddConstraint(
            model_name="stoppedwork",
            constraint=models.UniqueConstraint(
                condition=models.Q(("done_at", None)),
                fields=("tenancy", "uid"),
                name="a_workload_is_stopped_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="stoppedwork",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("done_at", None), ("done_at__gte", models.F("asked_at")), _connector="OR"
                ),
                name="work_stops_after_it_was_asked_to",
            ),
        ),
    ]
