"""The pages: POST /orders, GET /orders/7, GET /tenants/acme/explanation."""

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from examples.django_shop.forms import NewOrder
from examples.django_shop.jobs import send_receipt
from examples.django_shop.models import Order
from lonnymq.django import get_queue


# For programs, which have no cookies that another site could make use of.
@csrf_exempt
@require_POST
def create_order(request: HttpRequest) -> JsonResponse:
    form = NewOrder(request.POST)
    if not form.is_valid():
        return JsonResponse(form.errors, status=422)
    with transaction.atomic():
        order = form.save()
        send_receipt.options(connection=connection).enqueue(order.tenant, order=order.id)
    return JsonResponse({"id": order.id}, status=201)


def show_order(request: HttpRequest, order_id: int) -> JsonResponse:
    order = get_object_or_404(Order, id=order_id)
    return JsonResponse({"item": order.item, "receipt": order.receipt})


def explain(request: HttpRequest, tenant: str) -> JsonResponse:
    explanation = get_queue().channel(tenant).explain(connection=connection)
    return JsonResponse({"reason": explanation.reason})
