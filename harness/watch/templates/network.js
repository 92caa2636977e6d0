// The drawing of a network: lines coloured by use and as wide as their queues, drops, failures, paths.

const WIDE = 680, LEFT = 74, RIGHT = 12, TOP = 34, BELOW = 24;
const LAYERS = ["hosts", "edge", "aggregation", "core"];
const NEAR = 7;
// In networks with more spots than this, switches are named only when the pointer is on them.
const NAMED = 40;
// From pale to dark on paper, from dim to bright on a dark screen: the order is visible without colours.
const PALE = [[214, 220, 227], [158, 202, 225], [66, 146, 198], [8, 81, 156], [32, 10, 52]];
const DARK = [[56, 64, 74], [38, 84, 128], [60, 140, 205], [140, 205, 245], [255, 247, 190]];
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6bb1", "#7a8b00"];
const DASHES = ["none", "8 4", "2 4", "9 3 2 3", "14 4", "4 2", "6 2 2 2 2 2", "1 3"];

const screenIsDark = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function ramp(share) {
  const stops = screenIsDark.matches && !printing ? DARK : PALE;
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
  const mixed = stops[low].map((from, i) => Math.round(from + (stops[low + 1][i] - from) * (at - low)));
  return `rgb(${mixed.join(",")})`;
}

class NetworkView {
  constructor(point) {
    this.point = point;
    const { spots, lines, pods } = point.network;
    this.height = spots.length > 80 ? 360 : 300;
    this.dense = lines.length > 150;
    this.svg = shape("svg", { viewBox: `0 0 ${WIDE} ${this.height}`, role: "img" });
    this.svg.classList.add("network");
    if (spots.length > 80) this.svg.style.minWidth = "560px";
    this.title = shape("title");
    this.groups = {};
    this.svg.append(this.title);
    for (const name of ["pods", "halves", "cuts", "paths", "drops", "spots"]) {
      this.groups[name] = shape("g", { class: name });
      this.svg.append(this.groups[name]);
    }
    this.where = spots.map(([, , x, y]) => [this.x(x), this.y(y)]);
    this.nameLayers();
    for (const [name, left, right] of pods) this.drawPod(name, left, right);
    this.halves = lines.flatMap((_, i) => [this.drawHalf(2 * i), this.drawHalf(2 * i + 1)]);
    this.spots = spots.map((_, i) => this.drawSpot(i));
  }

  x(share) { return LEFT + share * (WIDE - LEFT - RIGHT); }

  y(share) { return TOP + share * (this.height - TOP - BELOW); }

  nameLayers() {
    const heights = new Map();
    for (const [, layer, , y] of this.point.network.spots) heights.set(layer, Math.max(y, heights.get(layer) ?? 0));
    for (const [layer, y] of heights) {
      this.groups.pods.append(shape("text", { class: "layer", x: 4, y: this.y(y) + 4 }, LAYERS[layer]));
    }
  }

  drawPod(name, left, right) {
    const x = this.x(left), width = this.x(right) - x;
    const top = this.point.network.spots.filter((spot) => spot[1] === 2).map((spot) => spot[3])[0] ?? 0.3;
    const y = this.y(top) - 12;
    this.groups.pods.append(shape("rect", { class: "pod", x, y, width, height: this.height - 2 - y, rx: 4 }));
    const shown = width > 6 * name.length ? name : name.replace(/^pods? /, "");
    if (width > 6 * shown.length) {
      this.groups.pods.append(shape("text", { class: "pod-name", x: x + width / 2, y: this.height - 6 }, shown));
    }
  }

  middle(line) {
    const [a, b] = this.point.network.lines[line].map((spot) => this.where[spot]);
    if (this.point.network.lines[line][0] === this.point.network.lines[line][1]) return [a[0] + 18, a[1]];
    const level = a[1] === b[1], far = Math.abs(a[0] - b[0]);
    return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2 - (level ? Math.min(40, far / 6) : 0)];
  }

  // From the port that transmits to the middle of the line.
  ends(half) {
    const from = this.where[this.point.sender(half)], middle = this.middle(half >> 1);
    const itself = this.point.sender(half) === this.point.receiver(half) && half & 1;
    return [itself ? [from[0] - 18, from[1]] : from, itself ? from : middle];
  }

  drawHalf(half) {
    const [[x1, y1], [x2, y2]] = this.ends(half);
    const line = shape("line", { class: "half", x1, y1, x2, y2, "data-half": half });
    this.groups.halves.append(line);
    return line;
  }

  drawSpot(i) {
    const [name, layer, , , nodes] = this.point.network.spots[i], [x, y] = this.where[i];
    const host = layer === 0, size = (host ? 2.4 : 4) * (this.dense ? 1 : 1.5) + (nodes > 1 ? 3 : 0);
    const made = host
      ? shape("circle", { class: "spot host", cx: x, cy: y, r: size, "data-spot": i })
      : shape("rect", { class: "spot", x: x - size, y: y - size, width: 2 * size, height: 2 * size, rx: 1.5, "data-spot": i });
    made.append(shape("title", {}, name));
    this.groups.spots.append(made);
    if (!host && this.point.network.spots.length <= NAMED) {
      this.groups.spots.append(shape("text", { class: "spot-name", x: x + size + 2, y: y - size + 1 }, name));
    }
    return made;
  }

  // Draw the state at a time; `full` is the queue in packets that has the largest width.
  show(state, t) {
    const thin = this.dense ? 1 : 1.8, more = this.dense ? 3.5 : 7;
    const full = this.point.full_pkts || Math.max(1, ...state.q.filter(Number.isFinite));
    this.halves.forEach((line, half) => {
      const used = state.u[half], queued = state.q[half];
      line.setAttribute("stroke", ramp(Number.isFinite(used) ? used / 100 : 0));
      const wide = this.dense && this.point.network.lines[half >> 1].some((spot) => this.point.network.spots[spot][1] === 0) ? more / 2 : more;
      line.setAttribute("stroke-width", thin + wide * Math.min(1, Number.isFinite(queued) ? queued / full : 0));
    });
    const size = this.dense ? 3 : 5;
    this.groups.drops.replaceChildren(...state.drops.map(([half, pkts]) => {
      const [from, to] = this.ends(half);
      const [x, y] = [0, 1].map((i) => from[i] + 0.4 * (to[i] - from[i]));
      const cross = shape("path", { class: "drop", d: `M${x - size} ${y - size}L${x + size} ${y + size}M${x + size} ${y - size}L${x - size} ${y + size}` });
      cross.append(shape("title", {}, `${this.point.name(half)}: ${pkts} dropped`));
      return cross;
    }));
    this.showFailures(t);
  }

  showFailures(t) {
    const lines = new Set(this.point.failures(t).flatMap(({ halves }) => halves.map((half) => half >> 1)));
    this.groups.cuts.replaceChildren(...[...lines].flatMap((line) => {
      const [a, b] = this.point.network.lines[line].map((spot) => this.where[spot]), [x, y] = this.middle(line);
      return [
        shape("path", { class: "cut", d: `M${a.join(" ")}L${x} ${y}L${b.join(" ")}` }),
        shape("path", { class: "cut-cross", d: `M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x + 5} ${y - 5}L${x - 5} ${y + 5}` }),
      ];
    }));
  }

  // Highlight a flow's ends and the paths of its subflows; -1 for no flow.
  choose(flow) {
    const known = flow >= 0 && flow < this.point.flows.length;
    this.svg.classList.toggle("chosen", known);
    const [, , src, dst] = known ? this.point.flows[flow] : [];
    this.spots.forEach((spot, i) => spot.classList.toggle("end", known && (i === src || i === dst)));
    const made = [];
    const [first, last] = known ? [this.point.first[flow], this.point.first[flow + 1]] : [0, 0];
    for (let i = first; i < last && this.point.paths.length; i++) made.push(...this.path(i, i - first, last - first));
    this.groups.paths.replaceChildren(...made);
  }

  path(subflow, number, count) {
    const halves = this.point.paths[subflow];
    if (!halves.length) return [];
    const aside = (number - (count - 1) / 2) * 2.4;
    const spots = [this.point.sender(halves[0]), ...halves.map((half) => this.point.receiver(half))];
    const corners = spots.map((spot) => [this.where[spot][0] + aside, this.where[spot][1]]);
    const top = corners.reduce((high, corner) => (corner[1] < high[1] ? corner : high));
    const colour = COLOURS[number % COLOURS.length];
    const line = shape("path", {
      class: "path", d: "M" + corners.map((corner) => corner.join(" ")).join("L"), stroke: colour,
      "stroke-dasharray": DASHES[number % DASHES.length], "data-subflow": number,
    });
    const label = shape("text", { class: "path-number", x: top[0] + aside * 2.2, y: top[1] - 7 - (number % 2) * 11 }, String(number + 1));
    return [line, label];
  }

  // What is under the pointer: {spot} or {half}, or neither.
  under(event) {
    const matrix = this.svg.getScreenCTM();
    if (!matrix) return {};
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const near = (x, y) => Math.hypot(x - at.x, y - at.y);
    let best = NEAR, found = {};
    this.where.forEach(([x, y], spot) => { if (near(x, y) < best) { best = near(x, y); found = { spot }; } });
    if (found.spot !== undefined) return found;
    this.halves.forEach((_, half) => {
      const [[x1, y1], [x2, y2]] = this.ends(half), long = (x2 - x1) ** 2 + (y2 - y1) ** 2 || 1;
      const along = Math.max(0, Math.min(1, ((at.x - x1) * (x2 - x1) + (at.y - y1) * (y2 - y1)) / long));
      const away = near(x1 + along * (x2 - x1), y1 + along * (y2 - y1));
      if (away < best) { best = away; found = { half }; }
    });
    return found;
  }
}
