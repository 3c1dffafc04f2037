"""Install the queue."""

from django.db import migrations

from lonnymq.django.operations import InstallQueue


class Migration(migrations.Migration):
    """Versions of the schema after the first need no migrations: see `lonnymq.django.apps.upgrade`."""

    initial = True
    dependencies = ()
    operations = (InstallQueue(),)
