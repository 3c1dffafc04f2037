"""The tasks: `python -m examples.django_shop.manage lonnymq_work examples.django_shop.jobs`."""

from django.db import connection, transaction

import lonnymq
from examples.django_shop.models import Order
from lonnymq.django import get_queue

app = lonnymq.App(get_queue())


@app.task(max_attempts=5)
def send_receipt(order: int) -> None:
    message = lonnymq.current_message()
    with transaction.atomic():
        receipt = f"receipt of {message.channel}, attempt {message.attempt}"
        Order.objects.filter(id=order).update(receipt=receipt)
        # In the transaction of its effect: both happen, or neither.
        message.complete(connection=connection)
