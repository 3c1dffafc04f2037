"""The queue in projects of Django: add "lonnymq.django" to INSTALLED_APPS.

from django.db import connection
from lonnymq.django import get_queue

get_queue().enqueue("acme", {"video": 7}, connection=connection)
"""

from lonnymq.django.configuration import get_queue

__all__ = ["get_queue"]
