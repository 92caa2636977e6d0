// One flow in detail: the windows and rates of its subflows over time, and as a table.

const CHART = { wide: 300, high: 110, left: 34, bottom: 16, top: 6 };

function chart(caption, series, t) {
  const figure = element("figure");
  figure.append(element("figcaption", {}, caption));
  const { wide, high, left, bottom, top } = CHART;
  const svg = shape("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": caption });
  const points = series.flat();
  if (!points.length) {
    figure.append(element("p", { class: "faint" }, "not sampled"));
    return figure;
  }
  const times = points.map(([at]) => at), low = Math.min(...times), span = Math.max(...times) - low || 1;
  const most = Math.max(...points.map(([, value]) => value)) || 1;
  const x = (at) => left + ((at - low) / span) * (wide - left - 6);
  const y = (value) => high - bottom - (value / most) * (high - bottom - top);
  for (const [value, text] of [[0, "0"], [most, number(most)]]) {
    svg.append(shape("line", { class: "axis", x1: left, x2: wide - 6, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: left - 4, y: y(value) + 4, "text-anchor": "end" }, text));
  }
  for (const [at, anchor] of [[low, "start"], [low + span, "end"]]) {
    svg.append(shape("text", { x: x(at), y: high - 3, "text-anchor": anchor }, time(at)));
  }
  series.forEach((line, i) => svg.append(shape("path", {
    d: "M" + line.map(([at, value]) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("L"),
    stroke: COLOURS[i % COLOURS.length], "stroke-dasharray": DASHES[i % DASHES.length],
  })));
  const now = x(Math.min(Math.max(t, low), low + span));
  svg.append(shape("line", { class: "cursor", x1: now, x2: now, y1: top, y2: high - bottom }));
  figure.append(svg);
  return figure;
}

function swatch(i) {
  const svg = shape("svg", { width: 26, height: 8, "aria-hidden": "true" });
  svg.append(shape("line", { x1: 1, x2: 25, y1: 4, y2: 4, stroke: COLOURS[i % COLOURS.length], "stroke-width": 3, "stroke-dasharray": DASHES[i % DASHES.length] }));
  return svg;
}

function throughWhat(point, subflow) {
  const halves = point.paths[subflow] || [];
  if (!halves.length) return "not known";
  return halves.slice(0, -1).map((half) => point.network.spots[point.receiver(half)][0]).join(" · ");
}

function subflowTable(point, flow, state) {
  const table = element("table"), head = element("tr"), body = element("tbody");
  for (const name of ["subflow", "path", "window, packets", "RTT, ms", "rate"]) head.append(element("th", { scope: "col" }, name));
  for (let i = point.first[flow]; i < point.first[flow + 1]; i++) {
    const row = element("tr"), name = element("td"), at = i - point.first[flow];
    name.append(swatch(at), ` ${at + 1}`);
    row.append(name, element("td", {}, throughWhat(point, i)));
    for (const text of [number(state.w[i]), number(state.s[i]), rate(state.r[i])]) row.append(element("td", {}, text));
    body.append(row);
  }
  const top = element("thead");
  top.append(head);
  table.append(top, body);
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Subflows" });
  scroll.append(table);
  return scroll;
}

function details(point, flow, state, t) {
  const subflows = [...Array(point.first[flow + 1] - point.first[flow]).keys()].map((i) => point.first[flow] + i);
  const over = (name) => subflows.map((subflow) => point.series(name, subflow));
  return [
    chart("Congestion windows, packets", over("w"), t),
    chart("Rates, Mb/s", over("r"), t),
    subflowTable(point, flow, state),
  ];
}
