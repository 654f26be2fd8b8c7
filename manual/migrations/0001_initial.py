"""The tables as they are, with what guards them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from audit.legal_moves import only_moves

TASKS: dict[str, tuple[str, ...]] = {
    "open": ("taken", "done", "failed", "dropped"),
    "taken": ("open", "done", "failed", "dropped"),
    "done": (),
    "failed": (),
    "dropped": (),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("provisioning", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Task",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("title", models.CharField(max_length=300)),
                ("instruction", models.TextField()),
                ("facts", models.JSONField(default=list)),
                ("offering", models.CharField(blank=True, max_length=20)),
                ("request_number", models.PositiveBigIntegerField(null=True)),
                ("until", models.DateTimeField(null=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("set_up", "Set up"),
                            ("take_down", "Take down"),
                            ("set_apart", "Make a subscription"),
                        ],
                        default="set_up",
                        max_length=10,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "To be taken"),
                            ("taken", "Being carried out"),
                            ("done", "Done"),
                            ("failed", "Could not be carried out"),
                            ("dropped", "Not needed any more"),
                        ],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("note", models.TextField(blank=True, max_length=2000)),
                ("version", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(null=True)),
                ("escalate_at", models.DateTimeField(null=True)),
                ("reminded_at", models.DateTimeField(null=True)),
                ("escalated_at", models.DateTimeField(null=True)),
                ("taken_at", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
                (
                    "assignee",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tasks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tasks",
                        to="accounts.team",
                    ),
                ),
                (
                    "tenancy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tasks",
                        to="provisioning.tenancy",
                    ),
                ),
                (
                    "wanted_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["open", "taken"])),
                        fields=["created_at"],
                        name="task_unfinished",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("request_number", "kind"),
                        name="a_request_has_one_task_of_a_kind",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["open", "taken"])),
                        fields=("tenancy",),
                        name="a_team_is_set_apart_once_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("kind__in", ["set_up", "take_down"]), ("tenancy", None)
                            ),
                            models.Q(
                                ("kind", "set_apart"),
                                ("request_number", None),
                                ("tenancy__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_task_is_of_a_known_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("assignee", None), ("state", "open")),
                            models.Q(("assignee__isnull", False), ("state", "taken")),
                            models.Q(
                                ("assignee__isnull", False),
                                ("done_at__isnull", False),
                                ("state__in", ["done", "failed"]),
                            ),
                            models.Q(("done_at__isnull", False), ("state", "dropped")),
                            _connector="OR",
                        ),
                        name="a_task_is_somebodys_once_taken",
                    ),
                ],
            },
        ),
        only_moves(
            "manual_task",
            "state",
            TASKS,
            words="a task that is over is never taken up again",
        ),
    ]
