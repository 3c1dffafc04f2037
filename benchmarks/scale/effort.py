"""How long and how much to measure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    name: str
    rounds: int
    window_s: float
    # Messages over which the cost per message is averaged.
    messages: int
    connections: tuple[int, ...]
    channels: tuple[int, ...]


EFFORTS = {
    "quick": Effort("quick", 1, 2.0, 20_000, (1, 4, 16, 64), (1_000, 10_000, 100_000)),
    "standard": Effort("standard", 3, 5.0, 100_000, (1, 2, 4, 8, 16, 32, 64, 96), (1_000, 10_000, 100_000)),
    "full": Effort(
        "full", 3, 8.0, 200_000, (1, 2, 4, 8, 16, 32, 64, 96), (1_000, 10_000, 100_000, 1_000_000)
    ),
    "smoke": Effort("smoke", 1, 0.2, 200, (1, 2), (20, 40)),
}
