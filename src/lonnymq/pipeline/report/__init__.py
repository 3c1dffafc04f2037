"""The report: one self-contained HTML file, made to be looked at."""

from lonnymq.pipeline.report.gather import NothingToReport, gather
from lonnymq.pipeline.report.page import page
from lonnymq.pipeline.report.story import Story

__all__ = ["NothingToReport", "Story", "gather", "page"]
