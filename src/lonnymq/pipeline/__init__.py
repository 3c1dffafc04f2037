"""What a queue's history says: each step takes frames and returns frames; `run` wires them to files."""

from lonnymq.pipeline.forecast import forecast
from lonnymq.pipeline.generate import Synthetic, generate
from lonnymq.pipeline.shares import fairness
from lonnymq.pipeline.windows import windows

__all__ = ["Synthetic", "fairness", "forecast", "generate", "windows"]
