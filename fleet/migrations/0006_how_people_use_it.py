from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0005_identity_capacity_and_parts"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="api_server",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
        migrations.AddField(
            model_name="cluster",
            name="dashboards_url",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
        migrations.AddField(
            model_name="cluster",
            name="kubelogin_server_id",
            field=models.CharField(
                blank=True,
                db_default="6dae42f8-4368-4678-94ff-3960e28e3630",
                default="6dae42f8-4368-4678-94ff-3960e28e3630",
                max_length=36,
            ),
        ),
    ]
