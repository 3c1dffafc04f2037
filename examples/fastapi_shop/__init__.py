"""A web shop: FastAPI takes orders, and a worker sends their receipts. See docs/howto/fastapi.md."""
