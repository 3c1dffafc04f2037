// Shows the tip of the mark that the pointer is on.
const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  tip.classList.toggle("is-shown", Boolean(mark));
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY > innerHeight - box.height - 30 ? event.clientY - box.height - 12 : event.clientY + 16) + "px";
});

// A click on a heading sorts by that column. The table of all tenants has its rows as data, and shows some of them.
const byValue = (a, b) => (isNaN(a) || isNaN(b) ? String(a).localeCompare(String(b)) : a - b);
function onSort(table, sort) {
  for (const head of table.querySelectorAll("th")) {
    head.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
      sort(head.cellIndex, order);
    });
  }
}
const data = document.getElementById("rows");
for (const table of document.querySelectorAll("table")) {
  if (data && table.closest("#tenants")) continue;
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  onSort(table, (column, order) => {
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort((a, b) => order * byValue(value(a, column), value(b, column))));
  });
}
if (data) {
  const rows = JSON.parse(data.textContent), table = document.querySelector("#tenants table");
  const classes = [...table.querySelectorAll("th")].map((head) => head.className);
  const search = document.getElementById("search"), more = document.getElementById("more");
  const step = table.tBodies[0].rows.length;
  let shown = step;
  const show = () => {
    const words = search.value.trim().toLowerCase();
    const found = rows.filter((row) => row[0][0].toLowerCase().includes(words) || row.at(-1)[0].includes(words));
    table.tBodies[0].replaceChildren(...found.slice(0, shown).map((cells) => {
      const row = document.createElement("tr");
      cells.forEach(([text, value], place) => {
        const cell = row.insertCell();
        cell.textContent = text;
        cell.dataset.value = value;
        cell.className = classes[place];
      });
      return row;
    }));
    document.getElementById("found").textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} tenants`;
    more.hidden = found.length <= shown;
  };
  onSort(table, (column, order) => {
    rows.sort((a, b) => order * byValue(a[column][1], b[column][1]));
    show();
  });
  search.addEventListener("input", () => { shown = step; show(); });
  more.addEventListener("click", () => { shown += 5 * step; show(); });
  document.getElementById("finder").hidden = false;
  show();
}

// All charts over time show the same section of it. Their plots are stretched, and their axes are drawn again.
const zoom = document.getElementById("zoom");
if (zoom) {
  const page = document.querySelector("main"), plots = [...document.querySelectorAll("svg.plot")];
  const whole = [Number(page.dataset.begin), Number(page.dataset.end)];
  const [left, , width] = plots[0].getAttribute("viewBox").split(" ").map(Number);
  const inputs = ["from", "until"].map((name) => document.getElementById(name));
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  let range = whole;
  const label = (second, step) => {
    const text = new Date(second * 1000).toISOString();
    if (second % 86400 === 0) return `${Number(text.slice(8, 10))} ${new Date(second * 1000).toLocaleString("en", { month: "short", timeZone: "UTC" })}`;
    return step < 60 ? text.slice(11, 19) : text.slice(11, 16);
  };
  const element = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const show = (from, until) => {
    range = [Math.max(from, whole[0]), Math.min(until, whole[1])];
    if (!(range[1] - range[0] >= 1)) range = whole;
    const span = range[1] - range[0], factor = width / (whole[1] - whole[0]);
    for (const plot of plots) {
      const height = plot.getAttribute("viewBox").split(" ")[3];
      plot.setAttribute("viewBox", `${left + (range[0] - whole[0]) * factor} 0 ${span * factor} ${height}`);
    }
    const step = STEPS.find((one) => span / one <= 8) ?? 86400 * Math.ceil(span / 8 / 86400);
    for (const axis of document.querySelectorAll("g.time-axis")) {
      const bottom = Number(axis.dataset.bottom), marks = [];
      for (let second = Math.ceil(range[0] / step) * step; second <= range[1]; second += step) {
        const x = left + (second - range[0]) / span * width;
        marks.push(element("line", { x1: x, x2: x, y1: bottom, y2: bottom + 5, class: "tick" }));
        marks.push(element("text", { x: Math.min(x, left + width - 12), y: axis.dataset.y, "text-anchor": "middle", class: "label" }, label(second, step)));
      }
      axis.replaceChildren(...marks);
    }
    inputs.forEach((input, place) => { input.value = new Date(range[place] * 1000).toISOString().slice(0, 19); });
  };
  inputs.forEach((input, place) => {
    input.addEventListener("change", () => {
      const edges = inputs.map((one) => Date.parse(one.value + "Z") / 1000);
      // An edge beyond the other one replaces it.
      if (!(edges[0] < edges[1])) edges[1 - place] = whole[1 - place];
      show(...edges);
    });
  });
  document.getElementById("whole").addEventListener("click", () => show(...whole));
  for (const plot of plots) {
    const chart = plot.ownerSVGElement;
    const second = (event) => {
      const box = plot.getScreenCTM ? chart.getBoundingClientRect() : null, scale = box.width / chart.viewBox.baseVal.width;
      return range[0] + ((event.clientX - box.left) / scale - left) / width * (range[1] - range[0]);
    };
    let begin = null;
    const shade = element("rect", { y: 0, height: plot.getAttribute("height"), class: "chosen", hidden: "" });
    chart.append(shade);
    const place = (moment) => left + (Math.min(Math.max(moment, range[0]), range[1]) - range[0]) / (range[1] - range[0]) * width;
    chart.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) begin = second(event); });
    addEventListener("pointermove", (event) => {
      if (begin === null) return;
      const edges = [place(begin), place(second(event))].sort((a, b) => a - b);
      shade.setAttribute("x", edges[0]);
      shade.setAttribute("width", edges[1] - edges[0]);
      shade.removeAttribute("hidden");
    });
    addEventListener("pointerup", (event) => {
      if (begin === null) return;
      const edges = [begin, second(event)].sort((a, b) => a - b);
      begin = null;
      shade.setAttribute("hidden", "");
      if (edges[1] - edges[0] > (range[1] - range[0]) / 100) show(...edges.map(Math.round));
    });
  }
  zoom.hidden = false;
}
