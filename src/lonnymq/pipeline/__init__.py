"""What a queue's history says: each step takes frames and returns frames; `steps` runs them on files."""

from lonnymq.pipeline.demo import Synthetic, generate
from lonnymq.pipeline.forecast import forecast
from lonnymq.pipeline.lake import Lake, LakeFormat
from lonnymq.pipeline.shares import fairness
from lonnymq.pipeline.windows import windows

__all__ = ["Lake", "LakeFormat", "Synthetic", "fairness", "forecast", "generate", "windows"]
