"""A team has a namespace for each project and environment on a cluster, not one for all."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("fleet", "0003_the_version_of_kueue"),
        ("provisioning", "0009_tenancies_are_parked"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="tenancy",
            options={"ordering": ["team__name", "cluster__name", "namespace"]},
        ),
        migrations.RemoveConstraint(
            model_name="tenancy",
            name="a_team_is_on_a_cluster_once",
        ),
        migrations.AddConstraint(
            model_name="tenancy",
            constraint=models.UniqueConstraint(
                condition=models.Q(("stage", "gone"), _negated=True),
                fields=("cluster", "project", "environment"),
                name="a_project_has_an_environment_on_a_cluster_once",
            ),
        ),
    ]
