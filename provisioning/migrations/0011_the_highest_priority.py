"""Which priorities the pods of a tenancy may have, where a lead says otherwise than its purpose."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("fleet", "0004_repairs_stop_for_a_reason"),
        ("provisioning", "0010_several_namespaces_on_a_cluster"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenancy",
            name="priority_limit",
            field=models.CharField(
                blank=True,
                choices=[
                    ("production-inference", "production-inference"),
                    ("scheduled-training", "scheduled-training"),
                    ("exploratory", "exploratory"),
                    ("best-effort", "best-effort"),
                ],
                db_default="",
                default="",
                max_length=30,
            ),
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "priority_limit__in",
                        ["", "production-inference", "scheduled-training", "exploratory", "best-effort"],
                    )
                ),
                name="a_priority_limit_is_a_priority",
            ),
        ),
    ]
