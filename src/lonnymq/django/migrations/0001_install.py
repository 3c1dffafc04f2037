"""Install the queue."""

from django.db import migrations, models

from lonnymq.django.configuration import view_name
from lonnymq.django.operations import InstallQueue


class Migration(migrations.Migration):
    """Versions of the schema after the first need no migrations: see `lonnymq.django.apps.upgrade`."""

    initial = True
    dependencies = ()
    operations = (
        InstallQueue(),
        migrations.CreateModel(
            "DeadLetter",
            (
                ("message_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("channel", models.TextField()),
                ("key", models.TextField(null=True)),
                ("attempts", models.IntegerField()),
                ("error", models.TextField(null=True)),
                ("created_at", models.DateTimeField()),
                ("buried_at", models.DateTimeField()),
                ("content_bytes", models.IntegerField()),
            ),
            options={
                "managed": False,
                "db_table": view_name("dead_letter"),
                "default_permissions": ("view", "delete", "redrive"),
                "verbose_name": "dead letter",
            },
        ),
        migrations.CreateModel(
            "Channel",
            (("channel", models.TextField(primary_key=True, serialize=False)),),
            options={
                "managed": False,
                "db_table": view_name("channel_status"),
                "default_permissions": ("view",),
                "verbose_name": "channel",
            },
        ),
    )
