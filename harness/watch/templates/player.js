// The player: which points are shown, the time, the chosen flow; and where the data comes from.

const byId = (id) => document.getElementById(id);

class Player {
  constructor(source) {
    this.source = source;
    this.panels = [];
    this.flow = this.aimed = -1;
    this.times = [];
    this.index = 0;
    this.following = source.live;
    this.chosen = false;
    this.bind();
  }

  get t() { return this.times.length ? this.times[this.index] : 0; }

  bind() {
    byId("play").addEventListener("click", () => this.play(!this.playing));
    byId("time").addEventListener("input", () => this.go(Number(byId("time").value)));
    byId("latest").addEventListener("click", () => { this.following = true; this.go(this.times.length - 1, true); });
    document.addEventListener("keydown", (event) => this.key(event));
    screenIsDark.addEventListener("change", () => this.redraw());
    window.addEventListener("beforeprint", () => { printing = true; this.redraw(); });
    window.addEventListener("afterprint", () => { printing = false; this.redraw(); });
    byId("list").addEventListener("pointerover", (event) => this.aim(this.row(event)));
    byId("list").addEventListener("pointerleave", () => this.aim(-1));
    byId("list").addEventListener("click", (event) => this.keep(this.row(event)));
  }

  row(event) {
    const item = event.target.closest("li");
    return item ? Number(item.dataset.flow) : -1;
  }

  // Show these points beside each other.
  async open(ids) {
    const points = await Promise.all(ids.map((id) => this.source.point(id)));
    while (this.panels.length < points.length) this.panels.push(new Panel(this, this.panels.length));
    this.panels.length = points.length;
    byId("panels").replaceChildren(...this.panels.map((panel) => panel.root));
    byId("details").replaceChildren(...this.panels.map((panel) => panel.details));
    for (const id of ["panels", "details"]) byId(id).classList.toggle("two", points.length > 1);
    points.forEach((point, i) => this.panels[i].load(point));
    this.offer();
    for (const id of ["controls", "legend", "flows"]) byId(id).hidden = false;
    this.timeline();
    this.drawRamp();
    this.listFlows();
    const begins = this.times.findIndex((t) => t > 0);
    this.go(this.following ? this.times.length - 1 : Math.max(0, begins), this.following);
    this.tell();
  }

  offer() {
    this.panels.forEach((panel) => panel.offer(this.source.choices(), panel.point.id));
  }

  async pick(place, id) {
    this.chosen = true;
    const kept = this.t;
    await this.open(this.panels.map((panel, i) => (i === place ? id : panel.point.id)));
    this.go(this.nearest(kept), this.following);
  }

  nearest(t) {
    let best = 0;
    this.times.forEach((at, i) => { if (Math.abs(at - t) < Math.abs(this.times[best] - t)) best = i; });
    return best;
  }

  // The slider has the times of the point with the most steps; the others show their nearest step.
  timeline() {
    const longest = this.panels.map((panel) => panel.point.steps).reduce((a, b) => (b.length > a.length ? b : a), []);
    this.times = longest.map((step) => step.t);
    byId("time").max = Math.max(0, this.times.length - 1);
    byId("play").disabled = byId("time").disabled = this.times.length < 2;
  }

  go(index, following = false) {
    this.index = Math.max(0, Math.min(index, this.times.length - 1));
    this.following = this.source.live && following;
    byId("latest").hidden = !this.source.live || this.following;
    byId("time").value = this.index;
    const last = Math.max(...this.panels.map((panel) => panel.point.ends));
    const warm = this.t <= 0 && this.times.length ? " (warm-up)" : "";
    byId("now").textContent = this.times.length ? `${time(this.t)} of ${time(last)}${warm}` : "no steps";
    byId("time").setAttribute("aria-valuetext", byId("now").textContent);
    this.show();
  }

  show() {
    const flow = this.aimed >= 0 ? this.aimed : this.flow;
    for (const panel of this.panels) panel.show(this.t, flow);
    this.showGoodput();
  }

  redraw() {
    for (const panel of this.panels) panel.at = undefined;
    this.drawRamp();
    this.show();
  }

  play(on) {
    this.playing = on;
    byId("play").textContent = on ? "Stop" : "Play";
    clearTimeout(this.timer);
    if (!on) return;
    if (this.index >= this.times.length - 1) this.go(0);
    const next = () => {
      if (this.index >= this.times.length - 1) { this.play(false); return; }
      this.go(this.index + 1);
      this.timer = setTimeout(next, 1000 / Number(byId("speed").value));
    };
    this.timer = setTimeout(next, 1000 / Number(byId("speed").value));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("select")) return;
    const slider = event.target.id === "time", count = this.panels.length ? this.panels[0].point.flows.length : 0;
    const steps = { ArrowLeft: this.index - 1, ArrowRight: this.index + 1, Home: 0, End: this.times.length - 1 };
    const flows = { ArrowUp: Math.max(0, this.flow - 1), ArrowDown: Math.min(count - 1, this.flow + 1), Escape: -1 };
    if (event.key === " " && !event.target.closest("button")) this.play(!this.playing);
    else if (event.key in steps && !slider) { this.play(false); this.go(steps[event.key]); }
    else if (event.key in flows && !(slider && event.key !== "Escape")) {
      this.aimed = -1;
      this.keep(flows[event.key], true);
    }
    else return;
    event.preventDefault();
  }

  aim(flow) {
    if (flow === this.aimed) return;
    this.aimed = flow;
    this.mark();
    this.show();
  }

  keep(flow, scroll = false) {
    this.flow = flow === this.flow && !scroll ? -1 : flow;
    this.mark(scroll);
    this.show();
  }

  mark(scroll = false) {
    [...byId("list").children].forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === this.flow));
      item.classList.toggle("aimed", i === this.aimed);
      if (i === this.flow && scroll) item.scrollIntoView({ block: "nearest" });
    });
    if (this.flow >= 0) byId("list").setAttribute("aria-activedescendant", `flow-${this.flow}`);
    else byId("list").removeAttribute("aria-activedescendant");
  }

  // The flows of the first point. Points beside it with the same flows have their bars in the same rows.
  listFlows() {
    const { flows } = this.panels[0].point;
    const same = this.panels.filter((panel) => panel.point.flows.every((flow, i) => flows[i] && flow[0] === flows[i][0] && flow[1] === flows[i][1]));
    this.compared = same;
    byId("list").replaceChildren(...flows.map(([src, dst], i) => {
      const item = element("li", { role: "option", id: `flow-${i}`, "data-flow": i, "aria-selected": "false" });
      const bars = shape("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" });
      same.forEach((_, at) => bars.append(shape("rect", { class: `bar-${at}`, x: 0, y: (12 / same.length) * at, height: 12 / same.length - 1.5, width: 0 })));
      item.append(element("span", {}, `${src} → ${dst}`), bars);
      return item;
    }));
    if (this.flow >= flows.length) this.flow = -1;
    this.nameBars(same);
    this.mark();
  }

  // Which bar belongs to which point, where there are two.
  nameBars(same) {
    const sides = same.length > 1 ? ["Upper bar", "Lower bar"] : [];
    byId("bars").replaceChildren(...sides.flatMap((side, at) => {
      const swatch = shape("svg", { class: "swatch", width: 22, height: 8, "aria-hidden": "true" });
      swatch.append(shape("rect", { class: `bar-${at}`, width: 22, height: 8 }));
      return [swatch, element("span", {}, ` ${side}: ${same[at].point.label}. `)];
    }));
  }

  showGoodput() {
    const states = (this.compared || []).map((panel) => panel.state).filter(Boolean);
    const most = Math.max(1e-9, ...(this.compared || []).map((panel) => panel.point.rate_mbps));
    [...byId("list").children].forEach((item, i) => {
      item.querySelectorAll("rect").forEach((bar, at) => {
        const mbps = states[at] ? states[at].f[i] : NaN;
        bar.setAttribute("width", Number.isFinite(mbps) ? Math.min(100, (100 * mbps) / most) : 0);
      });
      item.title = states.map((state) => rate(state.f[i])).join(" and ");
    });
  }

  drawRamp() {
    const svg = byId("ramp");
    svg.replaceChildren(...[...Array(50).keys()].map((i) => shape("rect", { x: 3 * i, y: 0, width: 3.2, height: 10, fill: ramp(i / 49) })));
    for (const [x, anchor, text] of [[0, "start", "0"], [75, "middle", "50"], [150, "end", "100 %"]]) {
      svg.append(shape("text", { x, y: 21, "font-size": 10, "text-anchor": anchor }, text));
    }
  }

  tell(text = "") {
    const one = this.panels.length ? this.panels[0].point : null;
    const more = this.source.left_out ? `; ${this.source.left_out} more points: refabric watch shows all` : "";
    byId("status").textContent = text || (one ? `${one.label}; ${rate(one.rate_mbps)} links, ${one.queue}${more}` : "");
  }
}
