from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0003_the_version_of_kueue")]

    operations = [
        migrations.RunSQL(
            "UPDATE fleet_cluster SET brake_reason = 'Nobody wrote down why.'"
            " WHERE braked_at IS NOT NULL AND brake_reason = ''",
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            "UPDATE fleet_cluster SET brake_reason = '' WHERE braked_at IS NULL", migrations.RunSQL.noop
        ),
        migrations.AddConstraint(
            model_name="cluster",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("brake_reason", ""), ("braked_at", None)),
                    models.Q(("braked_at__isnull", False), models.Q(("brake_reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="repairs_stop_for_a_reason",
            ),
        ),
    ]
