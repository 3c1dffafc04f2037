"""Draws charts as SVG text, without a library; the style of the page defines their colours."""
