"""The report: one self-contained HTML file."""

from lonnymq.pipeline.report.page import render_page
from lonnymq.pipeline.report.summarise import NothingToReport, summarise
from lonnymq.pipeline.report.summary import Summary

__all__ = ["NothingToReport", "Summary", "render_page", "summarise"]
