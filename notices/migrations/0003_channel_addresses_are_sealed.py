"""Addresses of channels lie sealed in the database: those that are there are sealed now."""

from django.db import migrations, models

from notices.sealing import BEGINNING, seal, unseal


def seal_all(apps, schema_editor):
    for channel in apps.get_model("notices", "Channel").objects.exclude(sealed__startswith=BEGINNING):
        channel.sealed = seal(channel.sealed)
        channel.save(update_fields=["sealed"])


def unseal_all(apps, schema_editor):
    for channel in apps.get_model("notices", "Channel").objects.filter(sealed__startswith=BEGINNING):
        channel.sealed = unseal(channel.sealed)
        channel.save(update_fields=["sealed"])


class Migration(migrations.Migration):
    dependencies = [("notices", "0002_drift_ends_and_departures")]

    operations = [
        migrations.RemoveConstraint(model_name="channel", name="a_channel_is_told_over_tls"),
        migrations.AlterField(model_name="channel", name="url", field=models.TextField(db_column="url")),
        # The column keeps its name: the release before goes on with it while this one starts.
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RenameField(model_name="channel", old_name="url", new_name="sealed")]
        ),
        migrations.RunPython(seal_all, unseal_all),
        migrations.AddConstraint(
            model_name="channel",
            constraint=models.CheckConstraint(
                condition=models.Q(sealed__startswith="gAAAAA"), name="a_channels_address_is_sealed"
            ),
        ),
    ]
