"""The shop's own table, and its engine."""

import os

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import BigInteger, Text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    tenant: Mapped[str] = mapped_column(Text)
    item: Mapped[str] = mapped_column(Text)
    receipt: Mapped[str | None] = mapped_column(Text)


def create_engine() -> AsyncEngine:
    """Connect to the database of the queue, so that an order and its message share a transaction."""
    arguments = conninfo_to_dict(os.environ["LONNYMQ_DSN"])
    return create_async_engine("postgresql+psycopg://", connect_args=arguments)
