"""An allocation is whatever was granted, with what makes it, what it costs an hour, and from when it costs."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F


def cost_as_granted(apps, schema_editor):
    """GPUs that were granted before cost from the moment of their grant."""
    apps.get_model("allocations", "Allocation").objects.update(
        charged_from=F("starts_at"), usd_per_hour=F("gpus") * F("price_per_gpu_hour")
    )


def grant_as_the_release_before(apps, schema_editor):
    """The release before grants without saying what it costs an hour, while both are at work: it costs at once."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("""
            CREATE FUNCTION costs_from_its_grant() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN
                NEW.usd_per_hour := NEW.gpus * NEW.price_per_gpu_hour;
                NEW.charged_from := NEW.starts_at;
                RETURN NEW;
            END $$;
            CREATE TRIGGER costs_from_its_grant BEFORE INSERT ON allocations_allocation
            FOR EACH ROW WHEN (NEW.usd_per_hour IS NULL) EXECUTE FUNCTION costs_from_its_grant()
        """)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER costs_from_its_grant ON allocations_allocation")
        schema_editor.execute("DROP FUNCTION costs_from_its_grant()")


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_cost_centres_are_confirmed"),
        ("allocations", "0005_how_holdings_end"),
        ("fleet", "0007_ways_out"),
        ("provisioning", "0011_the_highest_priority"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="allocation",
            name="an_allocation_holds_a_gpu",
        ),
        migrations.AddField(
            model_name="allocation",
            name="charged_from",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="allocation",
            name="offering",
            field=models.CharField(db_default="gpus", default="gpus", max_length=20),
        ),
        migrations.AddField(
            model_name="allocation",
            name="place",
            field=models.CharField(blank=True, db_default="", default="", max_length=60),
        ),
        migrations.AddField(
            model_name="allocation",
            name="provisioner",
            field=models.CharField(
                choices=[
                    ("kubernetes", "made by the portal on the cluster"),
                    ("manual", "carried out by a person"),
                ],
                db_default="kubernetes",
                default="kubernetes",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="allocation",
            name="title",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="allocation",
            name="usd_per_hour",
            field=models.DecimalField(decimal_places=8, default=0, max_digits=18),
            preserve_default=False,
        ),
        migrations.RunPython(grant_as_the_release_before, remove),
        migrations.RunPython(cost_as_granted, migrations.RunPython.noop, elidable=True),
        migrations.AlterField(
            model_name="allocation",
            name="flavor",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="allocations",
                to="fleet.flavor",
            ),
        ),
        migrations.AlterField(
            model_name="allocation",
            name="tenancy",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="allocations",
                to="provisioning.tenancy",
            ),
        ),
        migrations.AddIndex(
            model_name="allocation",
            index=models.Index(
                condition=models.Q(("charged_from", None), ("ended_at", None)),
                fields=["tenancy"],
                name="allocation_not_charged_yet",
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("flavor", None), ("price_per_gpu_hour", 0), models.Q(("title", ""), _negated=True)
                    ),
                    models.Q(("flavor__isnull", False), ("gpus__gte", 1), ("tenancy__isnull", False)),
                    _connector="OR",
                ),
                name="an_allocation_is_of_gpus_or_says_what_it_is",
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("charged_from", None), ("charged_from__gte", models.F("starts_at")), _connector="OR"
                ),
                name="nothing_costs_before_it_starts",
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.CheckConstraint(
                condition=models.Q(("usd_per_hour__gte", 0)), name="an_allocation_never_earns_money"
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.CheckConstraint(
                condition=models.Q(("provisioner__in", ["kubernetes", "manual"])),
                name="an_allocation_has_a_known_provisioner",
            ),
        ),
    ]
