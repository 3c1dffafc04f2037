"""A worker in its own process: `python -m tests.chaos.worker '{...}'`."""

import json
import logging
import sys
from typing import Any

from lonnymq import AsyncQueue, ClientSettings, Handler, Retry, Worker, WorkerSettings
from tests.chaos.ledger import Ledger
from tests.chaos.parent import exit_with_parent
from tests.chaos.payloads import ChaosHandler


def create_worker(dsn: str, ledger: str, client: dict[str, Any], settings: dict[str, Any]) -> Worker:
    handler = Handler(call=ChaosHandler(Ledger(ledger), dsn), retry=Retry(0.1, max_s=0.5), name="chaos")
    queue = AsyncQueue(dsn, settings=ClientSettings(**client))
    return Worker(queue, handler, settings=WorkerSettings(**settings))


if __name__ == "__main__":
    exit_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s")
    sys.exit(create_worker(**json.loads(sys.argv[1])).run())
