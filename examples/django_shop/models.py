"""The shop's own table."""

from django.db import models


class Order(models.Model):
    tenant = models.CharField(max_length=60)
    item = models.CharField(max_length=200)
    receipt = models.TextField(null=True)
