"""The addresses, with the admin, which lists channels and dead letters."""

from django.contrib import admin
from django.urls import path

from examples.django_shop import views

urlpatterns = [
    path("orders", views.create_order),
    path("orders/<int:order_id>", views.show_order),
    path("tenants/<str:tenant>/explanation", views.explain),
    path("admin/", admin.site.urls),
]
