"""Creates the table; the migration of `lonnymq.django` creates the queue."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = (
        migrations.CreateModel(
            "Order",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tenant", models.CharField(max_length=60)),
                ("item", models.CharField(max_length=200)),
                ("receipt", models.TextField(null=True)),
            ],
        ),
    )
