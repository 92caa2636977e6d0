// One point on the page: its name, its numbers, its network, and the chosen flow in detail.

function failure({ link, share }) {
  return share ? `${link} slowed to ${number(share * 100)} %` : `${link} down`;
}

class Panel {
  constructor(player, place) {
    this.player = player;
    this.root = element("section", { class: "panel", "aria-label": `Point ${place + 1}` });
    const head = element("header");
    this.select = element("select", { "aria-label": `Point ${place + 1}` });
    this.numbers = element("span", { class: "numbers" });
    this.notes = element("div");
    this.frame = element("div", { class: "view" });
    this.about = element("p", { class: "about" });
    this.details = element("div", { class: "details" });
    head.append(this.select, this.numbers);
    this.root.append(head, this.notes, this.frame, this.about);
    this.select.addEventListener("change", () => player.pick(place, this.select.value));
    this.frame.addEventListener("pointermove", (event) => this.point_at(event));
    this.frame.addEventListener("pointerleave", () => this.leave());
    this.frame.addEventListener("click", (event) => this.click(event));
    this.hovered = {};
  }

  // `choices` are [id, name] of all points.
  offer(choices, id) {
    const text = JSON.stringify([choices, id]);
    if (text === this.offered) return;
    this.offered = text;
    this.select.replaceChildren(...choices.map(([value, name]) => {
      const option = element("option", { value }, name);
      option.selected = value === id;
      return option;
    }));
    this.select.hidden = choices.length < 2;
  }

  load(point) {
    this.point = point;
    this.network = new NetworkView(point);
    this.frame.replaceChildren(this.network.svg);
    this.at = undefined;
    this.hovered = {};
    this.tell();
  }

  tell() {
    const { point } = this;
    const doubt = point.state === "suspect" || point.state === "failed" ? [`This point is ${point.state}: ${point.reasons}`] : [];
    this.notes.replaceChildren(...[...doubt, ...point.notes].map((note) => element("p", { class: "note" }, note)));
  }

  show(t, flow) {
    const { point } = this, at = point.nearest(t);
    this.state = point.columns(at);
    if (!this.state) {
      this.numbers.textContent = `${point.short}: ${point.phase || "nothing measured yet"}`;
      return;
    }
    if (at !== this.at) this.network.show(this.state, at < 0 ? Infinity : point.steps[at].t);
    this.at = at;
    const flows = this.state.f.filter(Number.isFinite);
    const mean = flows.reduce((sum, value) => sum + value, 0) / (flows.length || 1);
    const full = this.state.u.reduce((count, used) => count + (used >= 95), 0);
    const dropped = this.state.drops.reduce((sum, [, pkts]) => sum + pkts, 0);
    const when = at < 0 ? "mean of the window" : time(point.steps[at].t);
    this.numbers.textContent = `${point.short}, ${when}: ${rate(mean)} per flow, ${full} of ${this.state.u.length} ${point.network.whole ? "ports" : "groups of ports"} 95 % used, ${number(dropped, 6)} dropped`;
    this.network.title.textContent = `${point.label}. ${this.numbers.textContent}. Busiest: ${this.busiest()}.`;
    this.network.choose(flow);
    this.describe(t);
    const known = flow >= 0 && flow < point.flows.length && at >= 0;
    this.details.replaceChildren(...(known ? details(point, flow, this.state, t) : []));
  }

  busiest() {
    const order = [...this.state.u.keys()].sort((a, b) => this.state.u[b] - this.state.u[a]).slice(0, 3);
    return order.map((half) => `${this.point.name(half)} ${number(this.state.u[half])} %`).join(", ");
  }

  describe(t) {
    const { half, spot } = this.hovered, { point, state } = this;
    if (half !== undefined) {
      const drops = (state.drops.find(([at]) => at === half) || [0, 0])[1];
      const failed = point.failures(t).filter(({ halves }) => halves.includes(half)).map((one) => `, ${failure(one)}`).join("");
      const queue = Number.isFinite(state.q[half]) ? `, queue ${number(state.q[half])}${point.full_pkts ? ` of ${point.full_pkts}` : ""} packets` : "";
      this.about.textContent = `${point.name(half)}: ${number(state.u[half])} % used${queue}, ${drops} dropped${failed}`;
    } else if (spot !== undefined) {
      this.about.textContent = point.network.spots[spot][0];
    } else {
      const down = point.failures(t).map(failure);
      this.about.textContent = down.length ? `Now ${down.join(", ")}.` : `Busiest: ${this.busiest()}.`;
    }
  }

  flow_of(spot) {
    const { flows } = this.point;
    const sent = flows.findIndex((flow) => flow[2] === spot);
    return sent >= 0 ? sent : flows.findIndex((flow) => flow[3] === spot);
  }

  point_at(event) {
    if (!this.network || !this.state) return;
    this.hovered = this.network.under(event);
    const { spot } = this.hovered;
    this.player.aim(spot === undefined ? -1 : this.flow_of(spot));
    this.describe(this.player.t);
  }

  leave() {
    this.hovered = {};
    this.player.aim(-1);
    if (this.state) this.describe(this.player.t);
  }

  click(event) {
    if (!this.network) return;
    const { spot } = this.network.under(event);
    this.player.keep(spot === undefined ? -1 : this.flow_of(spot));
  }
}
