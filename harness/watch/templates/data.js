// What the page knows: networks, points and their steps. Numbers are upper halves of 32-bit floats in base64.

const COLUMNS = ["u", "q", "f", "w", "s", "r"];

function floats(text) {
  const raw = atob(text);
  const bits = new Uint32Array(raw.length >> 1);
  for (let i = 0; i < bits.length; i++) {
    bits[i] = ((raw.charCodeAt(2 * i) | (raw.charCodeAt(2 * i + 1) << 8)) << 16) >>> 0;
  }
  return new Float32Array(bits.buffer);
}

class Step {
  constructor(raw) {
    this.t = raw.t;
    this.drops = raw.d;
    this.raw = raw;
    this.read = {};
  }
  column(name) {
    if (!(name in this.read)) this.read[name] = floats(this.raw[name]);
    return this.read[name];
  }
}

class Point {
  constructor(raw, network) {
    Object.assign(this, raw);
    this.network = network;
    this.steps = raw.steps.map((step) => new Step(step));
    this.first = [0];
    for (const flow of raw.flows) this.first.push(this.first[this.first.length - 1] + flow[4]);
    this.total = raw.mean === undefined ? null : {
      u: floats(raw.mean), q: floats(raw.longest), f: floats(raw.goodput),
      w: new Float32Array(0), s: new Float32Array(0), r: new Float32Array(0),
    };
  }
  add(steps) {
    for (const step of steps) this.steps.push(new Step(step));
  }
  // The position of the step whose time is nearest; -1 without steps.
  nearest(t) {
    let low = 0, high = this.steps.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.steps[middle].t < t) low = middle + 1; else high = middle;
    }
    if (low > 0 && Math.abs(this.steps[low - 1].t - t) <= Math.abs(this.steps[low].t - t)) low--;
    return this.steps.length ? low : -1;
  }
  // All columns at a step; the means of the whole window without steps.
  columns(at) {
    if (at < 0) return this.total && { ...this.total, drops: [] };
    const found = { drops: this.steps[at].drops };
    for (const name of COLUMNS) found[name] = this.steps[at].column(name);
    return found;
  }
  // One subflow's numbers over time, as [t, value].
  series(name, subflow) {
    return this.steps.map((step) => [step.t, step.column(name)[subflow]]).filter(([, v]) => Number.isFinite(v));
  }
  // The links that are down or slowed at a time: their names, halves, and shares of their rate.
  failures(t) {
    const found = new Map();
    for (const [at, halves, share, link] of this.events) {
      if (at > t) break;
      if (share < 1) found.set(link, { link, halves, share }); else found.delete(link);
    }
    return [...found.values()];
  }
  sender(half) { return this.network.lines[half >> 1][half & 1]; }
  receiver(half) { return this.network.lines[half >> 1][1 - (half & 1)]; }
  name(half) {
    return `${this.network.spots[this.sender(half)][0]} → ${this.network.spots[this.receiver(half)][0]}`;
  }
}

function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  if (value !== 0 && Math.abs(value) < 1) return value.toPrecision(2);
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 2 });
}

function rate(mbps) {
  if (!Number.isFinite(mbps)) return "–";
  return mbps >= 1000 ? `${number(mbps / 1000)} Gb/s` : `${number(mbps)} Mb/s`;
}

function time(t) {
  const size = Math.abs(t);
  if (size > 0 && size < 0.001) return `${number(t * 1e6)} µs`;
  if (size > 0 && size < 1) return `${number(t * 1e3)} ms`;
  return `${number(t)} s`;
}

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

function shape(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}
