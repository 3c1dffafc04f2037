"""A web shop: Django takes orders, and a worker sends their receipts. See docs/howto/django.md."""
