"""Dead letters and channels as models, for the admin and for queries; views of the queue are their tables."""

from typing import Any

from django.db import models

from lonnymq.django.configuration import read_configuration, view_name


class QueueManager(models.Manager):
    """Queries the database of the queue, whatever the routers of the project say."""

    def get_queryset(self) -> Any:
        return super().get_queryset().using(read_configuration().database)


class DeadLetter(models.Model):
    """A buried message, without its content. To change it, use the calls of the queue."""

    message_id = models.BigIntegerField(primary_key=True)
    channel = models.TextField()
    key = models.TextField(null=True)
    attempts = models.IntegerField()
    error = models.TextField(null=True)
    created_at = models.DateTimeField()
    buried_at = models.DateTimeField()
    content_bytes = models.IntegerField()

    objects = QueueManager()

    class Meta:
        managed = False
        db_table = view_name("dead_letter")
        default_permissions = ("view", "delete", "redrive")
        verbose_name = "dead letter"

    def __str__(self) -> str:
        return f"message {self.message_id} of channel {self.channel}"


class Channel(models.Model):
    """A channel, for the permission to see it; a query of the view costs more the more channels there are."""

    channel = models.TextField(primary_key=True)

    objects = QueueManager()

    class Meta:
        managed = False
        db_table = view_name("channel_status")
        default_permissions = ("view",)
        verbose_name = "channel"

    def __str__(self) -> str:
        return str(self.channel)
