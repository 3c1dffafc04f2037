"""The demo's tasks, run by: lonnymq work examples.demo.app:worker --processes 4"""

import asyncio
import os
import time

import lonnymq
from lonnymq import Retry

app = lonnymq.App(lonnymq.Queue(os.environ.get("LONNYMQ_DSN", "")))


@app.task()
async def transcode(video: int) -> None:
    """A task that waits, so that one process runs many at a time."""
    await asyncio.sleep(0.001)


@app.task()
def invoice(number: int) -> None:
    """A plain function, which runs in a thread."""
    time.sleep(0.005)


@app.task()
async def call_partner(number: int) -> None:
    """The partner's API limits calls per second, so its channel has a rate limit."""


@app.task(max_attempts=2, retry=Retry(first_s=0.1))
def sync_crm(customer: int) -> None:
    raise ConnectionError("the CRM does not answer")


worker = app.worker(concurrency=10, prefetch=10, name="demo")
