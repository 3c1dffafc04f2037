"""The report in a notebook."""

from dataclasses import dataclass, field
from html import escape

HEIGHT_PX = 900


@dataclass(frozen=True)
class ReportPage:
    """A report as HTML; notebooks such as Jupyter and Databricks show it in a frame of its own."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        # In a frame, the styles and the script of the page and of the notebook do not meet.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="LonnyMQ report"'
            f' style="width:100%;height:{HEIGHT_PX}px;border:0"></iframe>'
        )
