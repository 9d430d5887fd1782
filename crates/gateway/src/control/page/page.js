"use strict";
// The live page of a gateway: asks for its state, draws the last minute, sends changes.

const SECONDS = 60; // drawn, once there are so many
const EVERY = 250; // ms between questions
const WINDOW = 1; // s of percentiles and rates
const $ = (id) => document.getElementById(id);
const make = (tag, classes, text) => {
  const node = document.createElement(tag);
  if (classes) node.className = classes;
  if (text !== undefined) node.textContent = text;
  return node;
};

// --- quantities

const digits = (x) => (x >= 100 ? 0 : x >= 10 ? 1 : 2);
const plain = (x) => (Number.isFinite(x) ? x.toFixed(digits(Math.abs(x))).replace(/\.0+$|(\.\d*?)0+$/, "$1") : "–");
const scaled = (x, units) => {
  for (const [size, unit] of units) if (Math.abs(x) >= size) return [plain(x / size), unit];
  const [size, unit] = units[units.length - 1];
  return [plain(x / size), unit];
};
const rateOf = (x) => scaled(x, [[1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]]);
const timeOf = (x) => (x === null ? ["–", ""] : x === 0 ? ["0", "ms"] : scaled(x, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]));
const countOf = (x) => scaled(x, [[1e9, "G"], [1e6, "M"], [1e4 , "k"], [1, ""]].map(([s, u]) => [u === "k" ? 1e3 : s, u]));
const UNITS = { gbit: 1e9, mbit: 1e6, kbit: 1e3, bit: 1, s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9 };
const quantity = (text) => {
  const found = /^([\d.]+(?:e-?\d+)?)([a-z]+)$/i.exec(text);
  return found && UNITS[found[2]] ? Number(found[1]) * UNITS[found[2]] : NaN;
};
// Two significant digits or a little more, as somebody would choose it.
const round = (x) => {
  if (x <= 0) return 0;
  const step = 10 ** (Math.floor(Math.log10(x)) - 1);
  return Math.round(x / step) * step;
};
const LOWEST = 1e4, HIGHEST = 1e10; // b/s, of the slider
const toRate = (part) => round(LOWEST * (HIGHEST / LOWEST) ** part);
const fromRate = (rate) => Math.log(rate / LOWEST) / Math.log(HIGHEST / LOWEST);
const LONGEST = 2; // s, of the slider; the lower half is below 100 ms
const toDelay = (part) => (part <= 0 ? 0 : round(Math.max(1e-4, LONGEST * part ** 4.3)));
const fromDelay = (delay) => (delay / LONGEST) ** (1 / 4.3);
const rateText = (rate) => `${Math.round(rate)}bit`;
const delayText = (delay) => `${Math.round(delay * 1e6)}us`;

// --- what is known

let about = null;
let current = null; // the last state
const samples = []; // of the last minute

class Way {
  constructor(index, queue) {
    this.index = index;
    const node = $("way").content.cloneNode(true).firstElementChild;
    node.id = `way-${queue.queue}`;
    node.querySelector("h2").textContent = queue.queue === "up" ? "↑ Up" : "↓ Down";
    this.settings = node.querySelector(".settings");
    this.tiles = new Map();
    this.list = node.querySelector(".tiles");
    this.place = node.querySelector(".charts");
    this.rows = node.querySelector("tbody");
    this.charts = new Map();
    $("ways").append(node);
  }

  tile(name, [value, unit]) {
    let tile = this.tiles.get(name);
    if (!tile) {
      const box = make("div", "tile");
      const number = make("dd");
      box.append(make("dt", "", name), number);
      this.list.append(box);
      tile = [number, make("span"), make("small")];
      number.append(tile[1], tile[2]);
      number.dataset.tile = name;
      this.tiles.set(name, tile);
    }
    tile[1].textContent = value;
    tile[2].textContent = unit;
  }

  chart(name, lines, text, options = {}) {
    let chart = this.charts.get(name);
    if (!chart) {
      const card = make("div", "card chart");
      const canvas = make("canvas");
      canvas.setAttribute("role", "img");
      const legend = make("div", "legend");
      card.append(make("h3", "", name), canvas, legend);
      this.place.append(card);
      chart = { card, canvas, legend };
      this.charts.set(name, chart);
    }
    chart.seen = true;
    draw(chart.canvas, lines, text, options);
    const entries = lines.map((line, i) => {
      const entry = make("span");
      entry.append(make("i", `i${options.colour ?? (i % 6) + 1}`));
      if (line.name) entry.append(`${line.name} `);
      entry.append(make("b", "", text(line.values.at(-1) ?? NaN)));
      return entry;
    });
    chart.legend.replaceChildren(...entries);
    const now = lines.map((line) => `${line.name || name} ${text(line.values.at(-1) ?? NaN)}`).join(", ");
    chart.canvas.setAttribute("aria-label", `${name}: now ${now}`);
  }

  show() {
    const queue = current.queues[this.index];
    const trace = queue.rate_trace;
    const rate = trace ? trace.now_bps : quantity(queue.rate);
    const parameters = Object.entries(queue.params).slice(0, 4).map(([k, v]) => `${k} ${v}`).join(", ");
    this.settings.textContent =
      `${trace ? `trace, now ${rateOf(rate).join(" ")}` : rateOf(rate).join(" ")} · ${timeOf(quantity(queue.delay)).join(" ")} · ${queue.buffer} · ${queue.aqm}`;
    this.settings.title = parameters;
    const rows = samples.map((sample) => sample.ways[this.index]);
    const last = rows.at(-1);
    this.tile("Throughput", rateOf(last.rate));
    this.tile("Delay in the queue, median", timeOf(last.p50));
    this.tile("99th percentile", timeOf(last.p99));
    this.tile("Queue", [countOf(queue.backlog_packets).join(""), "packets"]);
    this.tile("Drops", [countOf(last.drops).join(""), "/s"]);
    this.tile("Marks", [countOf(last.marks).join(""), "/s"]);
    for (const event of queue.wire ? ["lost", "duplicated", "corrupted"] : []) {
      this.tile(`On the wire: ${event}`, [countOf(queue.wire[event]).join(""), "packets"]);
    }
    const line = (name, key) => ({ name, values: rows.map((row) => row[key] ?? NaN) });
    const time = (x) => timeOf(Number.isFinite(x) ? x : null).join(" ");
    this.charts.forEach((chart) => { chart.seen = false; });
    this.chart("Throughput", [line("", "rate")], (x) => rateOf(x).join(" "), { bound: rate, area: true });
    this.chart("Delay in the queue", [line("p50", "p50"), line("p95", "p95"), line("p99", "p99")], time);
    this.chart("Queue", [line("", "packets")], (x) => `${countOf(x).join("")} packets`, { area: true });
    const causes = new Map();
    for (const [kind, word] of [["drops", "dropped"], ["marks", "marked"]]) {
      for (const cause of Object.keys(queue[kind])) {
        if (!queue[kind][cause]) continue;
        causes.set(`${word}: ${cause.replaceAll("_", " ")}`, rows.map((row) => row.causes[`${kind} ${cause}`] ?? 0));
      }
    }
    const signalled = [...causes].map(([name, values]) => ({ name, values }));
    this.chart("Drops and marks, by cause", signalled.length ? signalled : [{ name: "none", values: rows.map(() => 0) }],
      (x) => `${countOf(x).join("")}/s`);
    const meanings = new Map(about.aqms.find((one) => one.name === queue.aqm)?.signals ?? []);
    for (const name of Object.keys(queue.signals)) {
      const values = rows.map((row) => (row.aqm === queue.aqm ? row.signals[name] ?? NaN : NaN));
      this.chart(`${queue.aqm}: ${name}`, [{ name: "", values }], signalText, { colour: 3, area: true });
      const heading = this.charts.get(`${queue.aqm}: ${name}`).card.firstChild;
      heading.title = meanings.get(name) ?? "";
    }
    for (const [name, chart] of this.charts) {
      if (!chart.seen) {
        chart.card.remove();
        this.charts.delete(name);
      }
    }
    this.flows(queue.flows);
  }

  flows(flows) {
    const port = (flow, i) => {
      const address = [flow.source, flow.destination][i];
      const number = flow.ports[i];
      return number ? (address.includes(":") ? `[${address}]:${number}` : `${address}:${number}`) : address;
    };
    const protocol = (flow) => ({ 1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP" })[flow.protocol] ?? `protocol ${flow.protocol}`;
    const rows = flows.map((flow) => {
      const row = make("tr");
      row.append(make("td", "", `${protocol(flow)} ${port(flow, 0)}`), make("td", "", port(flow, 1)));
      for (const number of [plain(flow.bytes * 8 / 1e6), flow.packets, flow.drops, flow.marks]) {
        row.append(make("td", "number", String(number)));
      }
      return row;
    });
    if (!rows.length) {
      const row = make("tr");
      const cell = make("td", "none", "Nothing was sent this way.");
      cell.colSpan = 6;
      row.append(cell);
      rows.push(row);
    }
    this.rows.replaceChildren(...rows);
  }
}

const signalText = (x) => {
  if (!Number.isFinite(x)) return "–";
  if (x !== 0 && Math.abs(x) < 0.01) return x.toExponential(1);
  return Math.abs(x) >= 1e4 ? countOf(x).join("") : plain(x);
};

const ways = [];

// --- samples

// The delay that the share `part` of the packets since an older state did not exceed.
const percentile = (before, now, part) => {
  const old = new Map(before);
  const fresh = now.map(([most, count]) => [most, count - (old.get(most) ?? 0)]);
  const all = fresh.reduce((sum, [, count]) => sum + count, 0);
  if (all <= 0) return null;
  let sum = 0;
  for (const [most, count] of fresh) {
    sum += count;
    if (sum >= part * all) return most;
  }
  return null;
};

const sample = (state) => {
  // Another process counts from 0.
  const own = samples.filter((one) => one.pid === state.pid);
  const past = [...own].reverse().find((one) => state.time_s - one.time >= WINDOW) ?? own[0];
  const each = state.queues.map((queue, i) => {
    const row = { packets: queue.backlog_packets, signals: queue.signals, aqm: queue.aqm, causes: {}, rate: NaN, drops: NaN, marks: NaN };
    if (!past) return row;
    const before = past.state.queues[i];
    const seconds = state.time_s - past.time;
    if (seconds <= 0) return row;
    row.drops = row.marks = 0;
    row.rate = 8 * (queue.departures_bytes - before.departures_bytes) / seconds;
    for (const kind of ["drops", "marks"]) {
      for (const cause of Object.keys(queue[kind])) {
        const perSecond = (queue[kind][cause] - (before[kind][cause] ?? 0)) / seconds;
        row.causes[`${kind} ${cause}`] = perSecond;
        row[kind] += perSecond;
      }
    }
    for (const [key, part] of [["p50", 0.5], ["p95", 0.95], ["p99", 0.99]]) {
      row[key] = percentile(before.delays, queue.delays, part);
    }
    return row;
  });
  samples.push({ time: state.time_s, pid: state.pid, state, ways: each });
  while (samples.length > 1 && state.time_s - samples[0].time > SECONDS + 2) samples.shift();
  // Old states are needed for a window only.
  for (const one of samples) if (state.time_s - one.time > 3 * WINDOW + 2) one.state = slim(one.state);
};
const slim = (state) => (state.slim ? state : { slim: true, queues: state.queues.map(({ drops, marks, departures_bytes }) => ({ drops, marks, departures_bytes, delays: [] })) });

// --- pictures

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A round number at least as large.
const ceiling = (x) => {
  if (!(x > 0)) return 1;
  const step = 10 ** Math.floor(Math.log10(x));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((m) => m * step).find((top) => top >= x * 1.02) ?? 10 * step;
};

const draw = (canvas, lines, text, { bound, area, colour: shade } = {}) => {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const values = lines.flatMap((line) => line.values).filter(Number.isFinite);
  const most = Math.max(0, ...values);
  const least = Math.min(0, ...values);
  // The link's rate, if it is in sight.
  const top = ceiling(bound && bound <= 4 * most ? Math.max(most, bound) : most);
  const bottom = least < 0 ? -ceiling(-least) : 0;
  const [left, right, above, below] = [2, width - 2, 14, height - 14];
  const end = samples.at(-1)?.time ?? 0;
  const span = Math.min(SECONDS, Math.max(15, Math.ceil(end - (samples[0]?.time ?? 0))));
  const x = (time) => right - (end - time) * (right - left) / span;
  const y = (value) => below - (value - bottom) * (below - above) / (top - bottom);
  pen.font = "11px system-ui, sans-serif";
  pen.lineWidth = 1;
  pen.strokeStyle = colour("--grid");
  pen.fillStyle = colour("--quiet");
  for (const value of [bottom, (top + bottom) / 2, top]) {
    pen.beginPath();
    pen.moveTo(left, Math.round(y(value)) + 0.5);
    pen.lineTo(right, Math.round(y(value)) + 0.5);
    pen.stroke();
  }
  pen.textBaseline = "bottom";
  pen.textAlign = "left";
  pen.fillText(text(top), left, y(top) - 1);
  pen.textBaseline = "top";
  pen.fillText(`−${span} s`, left, below + 2);
  pen.textAlign = "right";
  pen.fillText("now", right, below + 2);
  if (bound && bound <= top) {
    pen.save();
    pen.setLineDash([4, 4]);
    pen.strokeStyle = colour("--quiet");
    pen.beginPath();
    pen.moveTo(left, y(bound));
    pen.lineTo(right, y(bound));
    pen.stroke();
    pen.restore();
  }
  pen.lineWidth = 1.8;
  pen.lineJoin = "round";
  lines.forEach((line, i) => {
    const stroke = colour(`--c${shade ?? (i % 6) + 1}`);
    let run = [];
    const finish = () => {
      if (!run.length) return;
      pen.beginPath();
      run.forEach(([px, py], n) => (n ? pen.lineTo(px, py) : pen.moveTo(px, py)));
      pen.strokeStyle = stroke;
      pen.stroke();
      if (area) {
        pen.lineTo(run.at(-1)[0], y(bottom));
        pen.lineTo(run[0][0], y(bottom));
        pen.globalAlpha = 0.13;
        pen.fillStyle = stroke;
        pen.fill();
        pen.globalAlpha = 1;
      }
      run = [];
    };
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, right - left, height);
    pen.clip();
    let before = null;
    line.values.forEach((value, n) => {
      const time = samples[n].time;
      // Nobody looked for a while.
      if (!Number.isFinite(value) || (before !== null && time - before > 5)) finish();
      if (Number.isFinite(value)) run.push([x(time), y(value)]);
      before = time;
    });
    finish();
    pen.restore();
  });
};

// --- changes

const chosen = () => document.querySelector("input[name=way]:checked").value;
const shown = () => current.queues[chosen() === "down" ? 1 : 0];
const held = new Set(); // what somebody is moving
let silence = 0;

const say = (text, wrong) => {
  $("said").textContent = text;
  $("said").classList.toggle("wrong", Boolean(wrong));
  clearTimeout(silence);
  if (!wrong) silence = setTimeout(() => { $("said").textContent = ""; }, 4000);
};

// One change at a time; what is wanted meanwhile waits, and of two the later one counts.
const waiting = [];
let sending = false;

const change = async (what, words) => {
  const last = waiting.at(-1);
  if (last && last.way === chosen()) {
    const { params, ...rest } = last.what;
    const merged = { ...rest, ...what };
    if (params && !what.aqm) merged.params = { ...params, ...what.params };
    waiting[waiting.length - 1] = { way: last.way, what: merged, words };
  } else {
    waiting.push({ way: chosen(), what, words });
  }
  if (sending) return;
  sending = true;
  do {
    while (waiting.length) await send(waiting.shift());
    await ask().catch(() => {});
  } while (waiting.length); // wanted while it was asked
  sending = false;
  held.clear();
  controls(true);
};

const send = async ({ way, what, words }) => {
  const body = JSON.stringify(way ? { way, ...what } : what);
  try {
    const answer = await fetch("set", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (answer.ok) {
      say(`${words}${way ? `, ${way}` : ""}: done`);
    } else {
      const { error, hint } = await answer.json().catch(async () => ({ error: answer.statusText }));
      say(hint ? `${error} (${hint})` : error, true);
    }
  } catch {
    say("the gateway does not answer", true);
  }
};

const slider = (id, read, words, key, spelled) => {
  const knob = $(id);
  knob.addEventListener("input", () => {
    held.add(id);
    $(`${id}-text`).textContent = words(read(Number(knob.value))).join(" ");
  });
  knob.addEventListener("change", () => {
    const value = read(Number(knob.value));
    change({ [key]: spelled(value) }, words(value).join(" "));
  });
};
slider("rate", toRate, rateOf, "rate", rateText);
slider("delay", toDelay, timeOf, "delay", delayText);
$("buffer").addEventListener("focus", () => held.add("buffer"));
$("buffer").addEventListener("blur", () => held.delete("buffer"));
$("buffer").addEventListener("change", () => change({ buffer: $("buffer").value.trim() }, `buffer ${$("buffer").value.trim()}`));
$("aqm").addEventListener("change", () => change({ aqm: $("aqm").value }, $("aqm").value));
document.querySelectorAll("input[name=way]").forEach((one) => one.addEventListener("change", () => controls(true)));

const chosenNumber = (input) => String(Number(Number(input.value).toPrecision(3)));

// A slider where there is a range of numbers, a list where there are words, else text.
const field = (parameter) => {
  const box = make("label", "knob");
  const head = make("span", "", parameter.name);
  box.title = `${parameter.doc} Allowed: ${parameter.allowed}; default ${parameter.default}`;
  const range = /^(-?[\d.e-]+) … (-?[\d.e]+)$/.exec(parameter.allowed);
  let input;
  if (parameter.choices.length) {
    input = make("select");
    parameter.choices.forEach((word) => input.append(new Option(word)));
  } else {
    input = make("input");
    input.type = "text";
    input.spellcheck = false;
    if (range && parameter.kind === "number" && Number(range[2]) <= 1000) {
      input.type = "range";
      [input.min, input.max, input.step] = [range[1], range[2], "any"];
      const output = make("output");
      head.append(output);
      input.addEventListener("input", () => {
        held.add("parameters");
        output.textContent = chosenNumber(input);
      });
    }
  }
  input.dataset.parameter = parameter.name;
  input.addEventListener("focus", () => held.add("parameters"));
  input.addEventListener("change", () => {
    const value = input.type === "range" ? chosenNumber(input) : input.value.trim();
    change({ params: { [parameter.name]: value } }, `${parameter.name} ${value}`);
  });
  box.append(head, input, make("small", "", parameter.doc));
  return box;
};

const controls = (anew) => {
  if (!current || !about) return;
  const queue = shown();
  const both = chosen() === "" && ["rate", "delay", "buffer", "aqm"].filter((key) => current.queues[0][key] !== current.queues[1][key]);
  $("summary").textContent = both && both.length ? `The two ways differ in ${both.join(", ")}; shown is up.` : "";
  if (!held.has("rate")) {
    $("rate").value = fromRate(quantity(queue.rate));
    $("rate-text").textContent = rateOf(quantity(queue.rate)).join(" ");
  }
  if (!held.has("delay")) {
    $("delay").value = fromDelay(quantity(queue.delay));
    $("delay-text").textContent = timeOf(quantity(queue.delay)).join(" ");
  }
  if (!held.has("buffer")) $("buffer").value = queue.buffer;
  if (document.activeElement !== $("aqm") || anew) $("aqm").value = queue.aqm;
  const fields = $("fields");
  if (fields.dataset.of !== queue.aqm) {
    fields.dataset.of = queue.aqm;
    $("of").textContent = queue.aqm;
    const parameters = about.aqms.find((one) => one.name === queue.aqm)?.parameters ?? [];
    fields.replaceChildren(...parameters.map(field));
    $("parameters").hidden = !parameters.length;
    anew = true;
    lock();
  }
  if (anew || !held.has("parameters")) {
    for (const input of fields.querySelectorAll("[data-parameter]")) {
      const value = queue.params[input.dataset.parameter] ?? "";
      if (input === document.activeElement && !anew) continue;
      if (input.value !== value) input.value = value;
      const output = input.parentElement.querySelector("output");
      if (output) output.textContent = value;
    }
  }
};
$("fields").addEventListener("focusout", () => held.delete("parameters"));

const lock = () => {
  if (about.about.recorded) document.querySelectorAll("#controls input, #controls select").forEach((one) => { one.disabled = true; });
};

// --- the conversation

const live = (on, text) => {
  $("live").textContent = text;
  $("live").classList.toggle("on", on);
  $("live").classList.toggle("off", !on);
};

const ask = async () => {
  const answer = await fetch("state", { signal: AbortSignal.timeout(4000) });
  if (!answer.ok) throw new Error(answer.status === 403 ? "this address is of an older gateway" : "the gateway ends");
  const state = await answer.json();
  if (current && state.time_s <= current.time_s) return;
  current = state;
  sample(state);
};

const show = () => {
  if (!ways.length) current.queues.forEach((queue, i) => ways.push(new Way(i, queue)));
  ways.forEach((way) => way.show());
  controls(false);
  const seconds = Math.floor(current.time_s);
  const pad = (x) => String(x).padStart(2, "0");
  $("clock").textContent = `${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`;
  const lost = Object.entries(current.lost_records).filter(([, count]) => count > 0).map(([file, count]) => `${count} records of the ${file} are lost`);
  const before = current.queues.map((queue) => queue.lost_before).reduce((a, b) => a + b, 0);
  if (before) lost.push(`${before} packets were lost before the gateway could read them: this machine is busy`);
  if (current.queues.some((queue) => !queue.conserved)) lost.push("packets are not accounted for: a fault, please report it");
  if (about.about.recorded) lost.push("Arrivals are being recorded: the links cannot be changed meanwhile.");
  $("notice").hidden = !lost.length;
  $("notice").textContent = lost.join(". ");
};

const wait = (ms) => new Promise((done) => { setTimeout(done, ms); });

const run = async () => {
  for (;;) {
    const began = performance.now();
    try {
      if (!about) {
        about = await (await fetch("about")).json();
        $("name").textContent = about.about.name;
        document.title = `${about.about.name} – Bluewater`;
        $("aqm").replaceChildren(...about.aqms.map((one) => {
          const option = new Option(one.name);
          option.title = one.summary;
          return option;
        }));
        lock();
      }
      if (!document.hidden) {
        await ask();
        show();
        live(true, "live");
      }
    } catch (error) {
      live(false, error.name === "TimeoutError" || error instanceof TypeError ? "no answer" : error.message);
      await wait(1000);
    }
    await wait(Math.max(50, EVERY - (performance.now() - began)));
  }
};
run();
