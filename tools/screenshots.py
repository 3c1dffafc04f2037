"""Makes the screenshots of the dashboard in docs/images: `make screenshots`.

Starts a private PostgreSQL, a producer and a worker with tenants of several kinds, opens the dashboard in the
installed Chromium, waits until the charts have something to show, and takes a picture of some pages.
"""

import argparse
import asyncio
import random
import shutil
import threading
import time
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

import lonnymq
from lonnymq.dashboard import Access, DashboardSettings, Visitor, asgi_app

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SMALL = ("acme", "globex", "initech", "umbrella", "wayne-tech", "hooli", "soylent", "stark")
# Pages, and the size of their pictures.
PICTURES = (
    ("dashboard-overview", "/", 1280, 1180, "light"),
    ("dashboard-channel", "/channels/partner-api", 1280, 1000, "dark"),
    ("dashboard-failures", "/failures", 1280, 760, "light"),
    ("dashboard-phone", "/channels?order=messages", 390, 844, "light"),
)
COLOURS = 160


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=int, default=300, help="how long to run before the pictures are taken"
    )
    seconds = parser.parse_args().seconds
    with lonnymq.embedded() as server:
        with lonnymq.Queue(server.dsn) as queue:
            queue.install()
            prepare(queue)
        threading.Thread(target=asyncio.run, args=[live(server.dsn)], daemon=True).start()
        address = serve(server.dsn)
        take_pictures(address, seconds)


def prepare(queue: lonnymq.Queue) -> None:
    queue.channel("partner-api").set(release_interval_ms=250, release_burst=5, weight=2)
    queue.channel("video-export").set(max_concurrency=3)
    queue.channel("hooli").pause()
    backlogs = {"big-corp": 9000, "partner-api": 4000, "video-export": 120, "hooli": 40}
    for channel, count in backlogs.items():
        queue.enqueue_many([lonnymq.NewMessage(channel=channel, payload={"n": n}) for n in range(count)])


async def live(dsn: str) -> None:
    """Produce and work, at rates that vary."""
    async with lonnymq.AsyncQueue(dsn) as queue:

        async def handle(message: lonnymq.AsyncMessage) -> None:
            await asyncio.sleep(random.uniform(0.1, 0.5))
            if message.channel == "soylent" and random.random() < 0.2:
                raise lonnymq.Bury("the address is not valid")

        settings = lonnymq.WorkerSettings(concurrency=8, name="worker-1")
        working = asyncio.create_task(lonnymq.Worker(queue, handle, settings=settings).serve())
        while not working.done():
            many = 1 + int(3 * random.random() * (1.5 + (time.time() % 60) / 60))
            for channel in random.choices(SMALL, k=many):
                await queue.enqueue(channel, {"order": random.randrange(1000)})
            await asyncio.sleep(0.25)


def serve(dsn: str) -> str:
    settings = DashboardSettings(environment="production", colour="red")
    app = asgi_app(dsn, access=lambda request: Visitor("olga", Access.OPERATOR), settings=settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"


def take_pictures(address: str, seconds: int) -> None:
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is not installed: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=program) as browser:
        page = browser.new_page()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _, path, *_ in PICTURES:
                page.goto(address + path)
                page.wait_for_timeout(3_000)
        for name, path, width, height, scheme in PICTURES:
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.goto(address + path)
            page.wait_for_timeout(500)
            file = IMAGES / f"{name}.png"
            page.screenshot(path=file)
            # Few colours make a small file.
            Image.open(file).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
                file, optimize=True
            )
            print(f"{file.relative_to(IMAGES.parents[1])}: {file.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
