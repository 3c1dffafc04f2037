"""The report: one self-contained HTML page."""

from lonnymq.pipeline.report.notebook import ReportPage
from lonnymq.pipeline.report.page import render_page
from lonnymq.pipeline.report.summarise import NothingToReport, summarise
from lonnymq.pipeline.report.summary import Summary

__all__ = ["NothingToReport", "ReportPage", "Summary", "render_page", "summarise"]
