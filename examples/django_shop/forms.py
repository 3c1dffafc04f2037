"""What a customer may order."""

from django.forms import ModelForm

from examples.django_shop.models import Order


class NewOrder(ModelForm):
    class Meta:
        model = Order
        fields = ("tenant", "item")
