"""Analyses a queue's history: functions from frames to frames, and `steps`, which runs them on a lake."""

from lonnymq.pipeline.forecast import forecast
from lonnymq.pipeline.lake import Lake, LakeFormat
from lonnymq.pipeline.reasons import reasons
from lonnymq.pipeline.shares import fairness
from lonnymq.pipeline.synthetic import SyntheticHistory, generate
from lonnymq.pipeline.windows import windows

__all__ = ["Lake", "LakeFormat", "SyntheticHistory", "fairness", "forecast", "generate", "reasons", "windows"]
