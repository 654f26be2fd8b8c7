"""What waits knows whose route it goes, and keeps what a new policy changed about it."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from audit.append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("approvals", "0011_everything_granted_is_an_allocation")]

    operations = [
        # Without a default: SQLite then adds the columns as they are, and the tables' triggers stay.
        migrations.AddField(
            "request",
            "routed_by",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="approvals.policyversion",
            ),
        ),
        migrations.AddField("step", "dropped_at", models.DateTimeField(null=True)),
        migrations.AddConstraint(
            "step",
            models.CheckConstraint(
                condition=Q(done_at=None) | Q(dropped_at=None), name="what_is_decided_is_not_dropped"
            ),
        ),
        migrations.CreateModel(
            name="Rerouting",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        primary_key=True, serialize=False, auto_created=True, verbose_name="ID"
                    ),
                ),
                ("content_version", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("now_decide", models.JSONField()),
                ("dropped", models.JSONField()),
                ("votes_stay", models.BooleanField(default=False)),
                ("refused", models.TextField(blank=True)),
                (
                    "evaluation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rerouting",
                        to="approvals.evaluation",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="approvals.policyversion",
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reroutings",
                        to="approvals.request",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["request", "content_version", "policy"],
                        condition=Q(refused=""),
                        name="a_policy_routes_a_request_once",
                    ),
                    models.UniqueConstraint(
                        fields=["request", "content_version", "policy"],
                        condition=~Q(refused=""),
                        name="a_policy_refuses_a_request_once",
                    ),
                ],
            },
        ),
        append_only("approvals_rerouting", words="changes of who decides"),
    ]
