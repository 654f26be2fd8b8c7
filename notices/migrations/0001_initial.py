"""The tables as they are, with what guards them."""

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import notices.models
from audit.legal_moves import only_moves

DELIVERIES: dict[str, tuple[str, ...]] = {
    "waiting": ("sent", "parked"),
    "parked": ("waiting",),
    "sent": (),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Channel",
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
                ("name", models.CharField(max_length=60)),
                (
                    "way",
                    models.CharField(
                        choices=[
                            ("teams", "Teams"),
                            ("slack", "Slack"),
                            ("webhook", "Webhook"),
                        ],
                        max_length=10,
                    ),
                ),
                ("sealed", models.TextField(db_column="url")),
                ("kinds", models.JSONField(default=list)),
                ("events", models.JSONField(default=list)),
                ("secret", models.TextField(blank=True, default="")),
                ("former_secret", models.TextField(blank=True, default="")),
                ("former_secret_until", models.DateTimeField(null=True)),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="channel_names_are_unique",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("way__in", ["teams", "slack", "webhook"])),
                        name="a_known_kind_of_channel",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sealed__startswith", "gAAAAA")),
                        name="a_channels_address_is_sealed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("secret__startswith", "gAAAAA"), ("way", "webhook")
                        )
                        | models.Q(
                            models.Q(("way", "webhook"), _negated=True),
                            ("secret", ""),
                        ),
                        name="a_webhook_has_a_sealed_secret",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("former_secret", ""), ("former_secret_until", None)
                        )
                        | models.Q(
                            ("former_secret__startswith", "gAAAAA"),
                            ("former_secret_until__isnull", False),
                            ("way", "webhook"),
                        ),
                        name="a_former_secret_is_sealed_and_ends",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Digest",
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
                ("day", models.DateField()),
                ("at", models.DateTimeField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="digests",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("person", "day"), name="one_digest_per_person_and_day"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="DigestHour",
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
                ("hour", models.PositiveSmallIntegerField(default=8)),
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="digest_hour",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("hour__lte", 23)), name="a_day_has_24_hours"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Notice",
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
                ("kind", models.CharField(choices=notices.models.kinds, max_length=30)),
                ("subject_type", models.CharField(max_length=30)),
                ("subject_id", models.BigIntegerField()),
                ("link", models.CharField(max_length=300)),
                ("message", models.JSONField()),
                ("event", models.JSONField(null=True)),
                (
                    "pace",
                    models.CharField(
                        choices=[
                            ("at_once", "At once"),
                            ("digest", "In the daily mail"),
                        ],
                        max_length=10,
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "channel",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="notices.channel",
                    ),
                ),
                (
                    "digest",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="notices.digest",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["at", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("channel__isnull", False), ("person", None)),
                            models.Q(("channel", None), ("person__isnull", False)),
                            _connector="OR",
                        ),
                        name="a_notice_is_for_a_person_or_a_channel",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind", ""), _negated=True),
                        name="a_notice_has_a_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("pace__in", ["at_once", "digest"])),
                        name="a_notice_is_to_be_sent",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("digest", None), ("pace", "digest"), _connector="OR"
                        ),
                        name="a_digest_holds_what_may_wait",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("link__regex", "^/([^/\\\\]|$)")),
                        name="a_notice_leads_into_the_portal",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("event__isnull", True),
                            models.Q(("kind", "event"), _negated=True),
                        )
                        | models.Q(
                            ("channel__isnull", False), ("event__isnull", False)
                        ),
                        name="an_event_is_for_a_channel",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("digest", None), ("pace", "digest")),
                        fields=["person", "at"],
                        name="notice_for_digest",
                    ),
                    models.Index(fields=["at"], name="notice_by_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
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
                    "way",
                    models.CharField(
                        choices=[
                            ("email", "E-mail"),
                            ("teams", "Teams"),
                            ("slack", "Slack"),
                            ("webhook", "Webhook"),
                            ("backstage", "Backstage"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("sent", "Sent"),
                            ("parked", "Given up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("last_error", models.CharField(blank=True, max_length=300)),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "digest",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="notices.digest",
                    ),
                ),
                (
                    "notice",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="notices.notice",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("digest__isnull", False), ("notice", None)),
                            models.Q(("digest", None), ("notice__isnull", False)),
                            _connector="OR",
                        ),
                        name="a_delivery_carries_one_thing",
                    ),
                    models.UniqueConstraint(
                        fields=("notice", "way"), name="a_notice_goes_each_way_once"
                    ),
                    models.UniqueConstraint(
                        fields=("digest", "way"), name="a_digest_goes_each_way_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "way__in",
                                ["email", "teams", "slack", "webhook", "backstage"],
                            )
                        ),
                        name="a_known_way",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("sent_at", None), ("state", "waiting")),
                            models.Q(("sent_at__isnull", False), ("state", "sent")),
                            models.Q(
                                ("sent_at", None),
                                ("state", "parked"),
                                models.Q(("last_error", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_delivery_is_on_its_way_sent_or_parked",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["next_at"],
                        name="delivery_is_due",
                    ),
                    models.Index(
                        condition=models.Q(("state", "parked")),
                        fields=["-id"],
                        name="delivery_is_parked",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Preference",
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
                ("kind", models.CharField(choices=notices.models.kinds, max_length=30)),
                (
                    "pace",
                    models.CharField(
                        choices=[
                            ("at_once", "At once"),
                            ("digest", "In the daily mail"),
                            ("none", "Not at all"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notice_preferences",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("person", "kind"), name="one_preference_per_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind", ""), _negated=True),
                        name="a_preference_has_a_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("pace__in", ["at_once", "digest", "none"])),
                        name="a_known_pace",
                    ),
                ]
            },
        ),
        only_moves(
            "notices_delivery",
            "state",
            DELIVERIES,
            words="what was sent is never sent again",
        ),
    ]
