"""The few parts of SVG that a chart needs, and its style, which follows the reader's light or dark scheme."""

from collections.abc import Iterable
from html import escape

# In the order in which a chart hands them out; ours has its own.
LIGHT = ("#8250df", "#bf8700", "#1a7f37", "#cf222e", "#bc4c00", "#0a7ea4", "#a0408f", "#57606a")
DARK = ("#a371f7", "#d29922", "#3fb950", "#f85149", "#db6d28", "#39c5cf", "#db61a2", "#8b949e")
COLOURS = len(LIGHT)


def style() -> str:
    """Return classes instead of variables: not every renderer of SVG knows these."""
    return (
        "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}"
        ".heading{font-size:15px;font-weight:600}.mine{font-weight:600}"
        + _scheme("#1f2328", "#59636e", "#d1d9e0", "#0969da", LIGHT)
        + "@media(prefers-color-scheme:dark){"
        + _scheme("#e6edf3", "#9198a1", "#3d444d", "#58a6ff", DARK)
        + "}"
    )


def _scheme(ink: str, soft: str, grid: str, ours: str, colours: tuple[str, ...]) -> str:
    rules = [
        f".ink{{fill:{ink}}}.soft{{fill:{soft}}}.grid{{stroke:{grid};stroke-width:1}}",
        f".halo{{stroke:{soft};stroke-width:1;stroke-dasharray:2 2}}",
    ]
    for name, colour in [("ours", ours), *((f"c{number}", colour) for number, colour in enumerate(colours))]:
        width = 3.5 if name == "ours" else 1.75
        rules.append(f".{name}{{stroke:{colour};stroke-width:{width};fill:none}}.{name}f{{fill:{colour}}}")
    return "".join(rules)


def document(width: float, height: float, title: str, description: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-labelledby="title description">\n'
        f'<title id="title">{escape(title)}</title>\n<desc id="description">{escape(description)}</desc>\n'
        f"<style>{style()}</style>\n{body}\n</svg>\n"
    )


def text(
    x: float, y: float, words: str, kind: str = "ink", anchor: str = "start", turned: bool = False
) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"{turn}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    places = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{places}" class="{kind}" stroke-linejoin="round" stroke-linecap="round"/>'


def dot(x: float, y: float, kind: str, radius: float = 3.0) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}f"/>'


def bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" class="{kind}f"/>'
