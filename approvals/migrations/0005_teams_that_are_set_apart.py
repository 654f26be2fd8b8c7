"""What people carry out for a tenancy: a subscription of the team's own."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0004_renewals_and_ends"),
        ("provisioning", "0001_tenancies"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="task", name="a_task_is_of_a_known_kind"),
        migrations.AddField(
            model_name="task",
            name="tenancy",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tasks",
                to="provisioning.tenancy",
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="wanted_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="kind",
            field=models.CharField(
                choices=[
                    ("set_up", "Set up"),
                    ("take_down", "Take down"),
                    ("set_apart", "Make a subscription"),
                ],
                default="set_up",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="request",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tasks",
                to="approvals.request",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["open", "taken"])),
                fields=("tenancy",),
                name="a_team_is_set_apart_once_at_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind__in", ["set_up", "take_down"]),
                        ("request__isnull", False),
                        ("tenancy", None),
                        ("wanted_by", None),
                    ),
                    models.Q(
                        ("kind", "set_apart"),
                        ("request", None),
                        ("tenancy__isnull", False),
                        ("wanted_by__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="a_task_is_of_a_known_kind",
            ),
        ),
    ]
