"""Charts as SVG text, without a library; their colours come from the style of the page that shows them."""
