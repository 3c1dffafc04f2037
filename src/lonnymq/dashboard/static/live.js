// Reads the page's live part again every few seconds: not while the page is hidden, paused, or in use.
"use strict";
(() => {
  const button = document.getElementById("updates");
  const stale = document.getElementById("stale");
  const region = () => document.getElementById("live");
  const seconds = () => Number(region()?.dataset.refresh || 0);
  if (!seconds()) return;

  const isPaused = () => button.getAttribute("aria-pressed") === "true";
  const isInUse = () => {
    const selected = document.getSelection();
    return region().querySelector("details[open]")
      || (region().contains(document.activeElement) && document.activeElement.matches("input, select, textarea"))
      || (selected && !selected.isCollapsed && region().contains(selected.anchorNode));
  };
  const refresh = () => {
    if (!document.hidden && !isPaused() && !isInUse()) htmx.trigger(region(), "live");
  };

  button.hidden = false;
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(!isPaused()));
    button.textContent = isPaused() ? "Resume updates" : "Pause updates";
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  document.body.addEventListener("htmx:afterOnLoad", () => { stale.hidden = true; });
  for (const failure of ["htmx:responseError", "htmx:sendError", "htmx:timeout"])
    document.body.addEventListener(failure, () => { stale.hidden = false; });
  setInterval(refresh, seconds() * 1000);
})();
