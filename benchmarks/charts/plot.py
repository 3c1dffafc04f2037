"""The frame of every chart, drawn by matplotlib, with colours for light and dark pages."""

from collections.abc import Callable
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, GRID, OURS, OTHERS = "#1f2328", "#59636e", "#d1d9e0", "#0969da", "#afb8c1"
COLOURS = ("#8250df", "#bf8700", "#1a7f37", "#cf222e", "#bc4c00", "#0a7ea4", "#a0408f", "#57606a")
# The replacements on dark pages.
DARK = ("#e6edf3", "#9198a1", "#30363d", "#58a6ff", "#545d68")
DARK_COLOURS = ("#a371f7", "#d29922", "#3fb950", "#f85149", "#db6d28", "#39c5cf", "#db61a2", "#8b949e")
# In points; a browser shows 72 points as 96 pixels.
WIDTH, TOP = 615.0, 44.0
SETTINGS: dict[Any, Any] = {
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.spines.bottom": False,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 7,
    "axes.labelcolor": SOFT,
    "lines.solid_capstyle": "round",
    # Keep text as text, and make the output reproducible.
    "svg.fonttype": "none",
    "svg.hashsalt": "lonnymq",
}


def render(
    title: str,
    subtitle: str,
    description: str,
    height: float,
    sides: tuple[float, float, float],
    draw: Callable[["Axes"], None],
) -> str:
    """Return a chart as SVG; `sides` are the margins left of, right of and below the drawing."""
    import matplotlib as mpl  # slow to import, and only charts need it
    from matplotlib.figure import Figure

    left, right, bottom = sides
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH / 72, height / 72))
        axes = figure.add_axes(
            (left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - TOP - bottom) / height)
        )
        figure.text(12 / WIDTH, 1 - 18 / height, title, color=INK, size=11.25, weight="bold")
        figure.text(12 / WIDTH, 1 - 32 / height, subtitle, color=SOFT)
        draw(axes)
        written = StringIO()
        metadata = {"Title": title, "Creator": None, "Date": None, "Format": None, "Type": None}
        figure.savefig(written, format="svg", transparent=True, metadata=metadata)
    drawn = written.getvalue()
    described = drawn.replace("</title>", f"</title>\n <desc>{escape(description)}</desc>", 1)
    return described.replace("</style>", f"{_style(drawn)}</style>", 1)


def _style(drawn: str) -> str:
    """Return CSS rules for system fonts, and for colours on dark pages."""
    pairs = zip((INK, SOFT, GRID, OURS, OTHERS, *COLOURS), (*DARK, *DARK_COLOURS), strict=True)
    uses = [(kind, f"{kind}: {light}", dark) for light, dark in pairs for kind in ("fill", "stroke")]
    rules = (f'[style*="{use}"]{{{kind}:{dark}!important}}' for kind, use, dark in uses if use in drawn)
    return (
        "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif!important}"
        f"@media(prefers-color-scheme:dark){{{''.join(rules)}}}"
    )
