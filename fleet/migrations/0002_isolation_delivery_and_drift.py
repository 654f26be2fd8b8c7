import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_one_stand_in_at_a_time"),
        ("fleet", "0001_clusters_and_flavors"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="brake_reason",
            field=models.CharField(blank=True, max_length=300, default="", db_default=""),
        ),
        migrations.AddField(
            model_name="cluster",
            name="braked_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="dashboards",
            field=models.BooleanField(default=True, db_default=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="dedicated_to",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="own_clusters",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="cluster",
            name="git_branch",
            field=models.CharField(default="main", max_length=100, db_default="main"),
        ),
        migrations.AddField(
            model_name="cluster",
            name="git_credentials",
            field=models.CharField(blank=True, max_length=200, default="", db_default=""),
        ),
        migrations.AddField(
            model_name="cluster",
            name="git_url",
            field=models.CharField(blank=True, max_length=300, default="", db_default=""),
        ),
        migrations.AddField(
            model_name="cluster",
            name="git_way",
            field=models.CharField(
                choices=[("direct", "Push to the branch"), ("pull-request", "Open a pull request")],
                default="direct",
                max_length=12,
                db_default="direct",
            ),
        ),
        migrations.AddField(
            model_name="cluster",
            name="jupyterhub_namespace",
            field=models.CharField(blank=True, max_length=63, default="", db_default=""),
        ),
        migrations.AddField(
            model_name="cluster",
            name="most_at_once",
            field=models.PositiveSmallIntegerField(default=4, db_default=4),
        ),
        migrations.AddField(
            model_name="cluster",
            name="on_drift",
            field=models.CharField(
                choices=[("repair", "Put it right at once"), ("ask", "Ask a platform lead")],
                default="repair",
                max_length=10,
                db_default="repair",
            ),
        ),
        migrations.AddField(
            model_name="cluster",
            name="shared_services",
            field=models.JSONField(blank=True, default=list, db_default=[]),
        ),
        migrations.AddField(
            model_name="cluster",
            name="writes_per_second",
            field=models.PositiveSmallIntegerField(default=20, db_default=20),
        ),
        migrations.AddField(
            model_name="flavor",
            name="dedicated_to",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="own_flavors",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="flavor",
            name="resource",
            field=models.CharField(default="nvidia.com/gpu", max_length=60, db_default="nvidia.com/gpu"),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="delivery",
            field=models.CharField(
                choices=[
                    ("apply", "Server-side apply"),
                    ("git", "A Git repository that Flux or Argo CD follows"),
                ],
                default="apply",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="cluster",
            constraint=models.CheckConstraint(
                condition=models.Q(("most_at_once__gte", 1), ("writes_per_second__gte", 1)),
                name="a_cluster_may_be_written_to",
            ),
        ),
    ]
