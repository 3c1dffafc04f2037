"""The application: `uvicorn examples.fastapi_shop.web:web`."""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncSession

from examples.fastapi_shop.jobs import app, send_receipt
from examples.fastapi_shop.tables import Base, Order, create_engine
from lonnymq.dashboard import PasswordAccess, User, asgi_app
from lonnymq.fastapi import QueueDependency, lifespan

# Without a password in the environment, nobody gets in.
PASSWORD = os.environ.get("SHOP_OPERATOR_PASSWORD") or secrets.token_urlsafe()
dashboard = asgi_app(access=PasswordAccess([User("operator", PASSWORD)]))


class NewOrder(BaseModel):
    tenant: Annotated[str, Field(min_length=1, max_length=60)]
    item: Annotated[str, Field(min_length=1, max_length=200)]


@asynccontextmanager
async def resources(web: FastAPI) -> AsyncIterator[dict[str, object]]:
    engine = create_engine()
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    # A mounted application is not told when the server stops.
    async with dashboard:
        yield {"engine": engine}
    await engine.dispose()


web = FastAPI(title="Shop", lifespan=lifespan(app, inner=resources))
web.mount("/queue", dashboard)


@web.post("/orders", status_code=201)
async def create_order(new: NewOrder, request: Request) -> dict[str, int]:
    async with AsyncSession(request.state.engine) as session, session.begin():
        order = Order(tenant=new.tenant, item=new.item)
        session.add(order)
        await session.flush()
        await send_receipt.options(connection=session).enqueue_async(new.tenant, order=order.id)
        return {"id": order.id}


@web.get("/orders/{order_id}")
async def show_order(order_id: int, request: Request) -> dict[str, str | None]:
    async with AsyncSession(request.state.engine) as session:
        order = await session.get(Order, order_id)
    if order is None:
        raise HTTPException(404, f"there is no order {order_id}")
    return {"item": order.item, "receipt": order.receipt}


@web.get("/tenants/{tenant}/explanation")
async def explain(tenant: str, queue: QueueDependency) -> dict[str, str]:
    explanation = await queue.channel(tenant).explain()
    return {"reason": explanation.reason}
