"""The tables as they are, with what guards them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="OfferingSetting",
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
                (
                    "key",
                    models.CharField(
                        choices=[
                            ("gpus", "GPUs"),
                            ("notebook", "Notebook"),
                            ("volume", "Dataset volume"),
                            ("namespace", "Namespace"),
                            ("training", "Large training"),
                            ("endpoint", "Production inference endpoint"),
                            ("openai", "Azure OpenAI endpoint"),
                            ("reservation", "Capacity reservation"),
                            ("cluster", "New cluster"),
                        ],
                        max_length=20,
                        unique=True,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "gate",
                    models.CharField(
                        choices=[
                            ("self_service", "the policy, when every rule holds"),
                            ("approval", "always people"),
                        ],
                        max_length=12,
                    ),
                ),
                ("position", models.PositiveSmallIntegerField()),
                ("prices", models.JSONField(default=dict)),
                ("priced_on", models.JSONField(db_default={}, default=dict)),
                ("grace_hours", models.PositiveSmallIntegerField(null=True)),
                (
                    "when_over",
                    models.CharField(
                        blank=True,
                        choices=[
                            (
                                "finish",
                                "it may finish, while nobody else wants the GPUs",
                            ),
                            (
                                "drain",
                                "it may go on for some hours, then it is stopped",
                            ),
                            ("stop", "it is stopped at once"),
                        ],
                        db_default="",
                        default="",
                        max_length=8,
                    ),
                ),
                ("drain_hours", models.PositiveSmallIntegerField(null=True)),
            ],
            options={
                "ordering": ["position", "key"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "key__in",
                                [
                                    "gpus",
                                    "notebook",
                                    "volume",
                                    "namespace",
                                    "training",
                                    "endpoint",
                                    "openai",
                                    "reservation",
                                    "cluster",
                                ],
                            )
                        ),
                        name="an_offering_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("gate__in", ["self_service", "approval"])),
                        name="an_offering_has_a_known_gate",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("when_over__in", ["", "finish", "drain", "stop"])
                        ),
                        name="an_offering_ends_in_a_known_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("grace_hours", None),
                            ("grace_hours__lte", 168),
                            _connector="OR",
                        ),
                        name="grace_is_a_week_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("drain_hours", None),
                            ("drain_hours__lte", 720),
                            _connector="OR",
                        ),
                        name="a_drain_is_30_days_at_most",
                    ),
                ],
            },
        )
    ]
