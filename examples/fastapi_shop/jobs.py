"""The tasks: `lonnymq work examples.fastapi_shop.jobs`."""

from collections.abc import AsyncIterator

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

import lonnymq
from examples.fastapi_shop.tables import Order, create_engine

app = lonnymq.App()


@app.lifespan
async def open_engine() -> AsyncIterator[AsyncEngine]:
    engine = create_engine()
    yield engine
    await engine.dispose()


@app.task(max_attempts=5)
async def send_receipt(order: int) -> None:
    message = lonnymq.current_async_message()
    async with AsyncSession(app.resources) as session, session.begin():
        receipt = f"receipt of {message.channel}, attempt {message.attempt}"
        await session.execute(update(Order).where(Order.id == order).values(receipt=receipt))
        # In the transaction of its effect: both happen, or neither.
        await message.complete(connection=session)
