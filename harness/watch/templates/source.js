// Where points come from: this page itself, or refabric watch on this machine.

class Embedded {
  constructor(data) {
    this.live = false;
    this.left_out = data.left_out;
    this.points = new Map(data.points.map((raw) => [raw.id, new Point(raw, data.networks[raw.network])]));
  }
  choices() { return [...this.points.values()].map((point) => [point.id, point.name_shown]); }
  async point(id) { return this.points.get(id); }
  first() { return [...this.points.keys()].slice(0, 2); }
}

class Served {
  constructor() {
    this.live = true;
    this.token = new URLSearchParams(location.search).get("token") || "";
    this.known = new Map();
    this.listed = [];
  }
  async ask(path) {
    const answer = await fetch(path, { headers: { "X-Refabric-Token": this.token }, cache: "no-store" });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return answer.json();
  }
  async list() {
    const { points, first } = await this.ask("points");
    this.listed = points;
    this.opens = first;
  }
  choices() { return this.listed.map((point) => [point.id, point.name_shown]); }
  async point(id) {
    if (!this.known.has(id)) {
      const { point, network } = await this.ask(`point?id=${encodeURIComponent(id)}`);
      this.known.set(id, new Point(point, network));
    }
    return this.known.get(id);
  }
  first() { return this.opens; }
  // Read on in a running point; return whether anything changed.
  async follow(point) {
    if (!point.running) return false;
    const found = await this.ask(`steps?id=${encodeURIComponent(point.id)}&round=${point.round}&from=${point.steps.length}`);
    if (found.round !== point.round) point.steps = [];
    const changed = found.round !== point.round || found.steps.length > 0 || found.phase !== point.phase || !found.running;
    point.add(found.steps);
    Object.assign(point, { round: found.round, phase: found.phase, running: found.running });
    return changed;
  }
}

async function poll(player, source) {
  try {
    const before = JSON.stringify(source.opens);
    await source.list();
    const free = player.panels.every((panel) => !panel.point.running || source.opens.includes(panel.point.id));
    const moved = JSON.stringify(source.opens) !== before && !player.chosen && free;
    if (source.opens.length && (moved || !player.panels.length)) await player.open(source.opens);
    player.offer();
    const changed = await Promise.all(player.panels.map((panel) => source.follow(panel.point)));
    if (changed.some(Boolean)) {
      player.timeline();
      player.go(player.following ? player.times.length - 1 : player.index, player.following);
    }
    const running = source.listed.filter((point) => point.running).length;
    player.tell(player.panels.length ? "" : "No point is stored or running here yet; this page shows the first one that starts.");
    if (running) byId("status").textContent += `; ${running} running`;
  } catch (error) {
    byId("status").textContent = `refabric watch does not answer (${error.message}); the page tries again.`;
  }
  setTimeout(() => poll(player, source), 1000);
}

const data = JSON.parse(byId("data").textContent);
const source = data.live ? new Served() : new Embedded(data);
const player = new Player(source);
if (data.live) poll(player, source);
else player.open(source.first());
