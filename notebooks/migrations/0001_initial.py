"""The tables as they are, with what guards them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from audit.append_only import append_only
from audit.legal_moves import only_moves

PROFILES: dict[str, tuple[str, ...]] = {
    "draft": ("published", "retired"),
    "published": ("deprecated",),
    "deprecated": ("published", "retired"),
    "retired": (),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Profile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.CharField(max_length=40, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("published", "Published"),
                            ("deprecated", "Deprecated"),
                            ("retired", "Retired"),
                        ],
                        default="draft",
                        max_length=10,
                    ),
                ),
                ("published", models.PositiveIntegerField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                (
                    "successor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="predecessors",
                        to="notebooks.profile",
                    ),
                ),
            ],
            options={
                "ordering": ["slug"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["draft", "published", "deprecated", "retired"])),
                        name="a_profile_is_in_a_known_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("published", None), ("state", "draft")),
                            models.Q(
                                ("published__gte", 1),
                                ("published__isnull", False),
                                ("state__in", ["deprecated", "published"]),
                            ),
                            ("state", "retired"),
                            _connector="OR",
                        ),
                        name="a_profile_is_offered_in_a_version",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "deprecated"), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="a_profile_is_deprecated_for_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("successor", None), ("state__in", ["deprecated", "retired"]), _connector="OR"
                        ),
                        name="only_a_profile_that_goes_has_a_successor",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("successor", None),
                            models.Q(("successor", models.F("id")), _negated=True),
                            _connector="OR",
                        ),
                        name="no_profile_succeeds_itself",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProfileVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=60)),
                ("text", models.TextField()),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="notebooks.profile",
                    ),
                ),
            ],
            options={
                "ordering": ["profile", "-number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("profile", "number"), name="one_profile_version_per_number"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)), name="a_profile_version_counts_from_one"
                    ),
                ],
            },
        ),
        only_moves("notebooks_profile", "state", PROFILES, words="a retired profile never comes back"),
        append_only("notebooks_profileversion", words="versions of profiles"),
    ]
