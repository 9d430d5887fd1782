"use strict";
// The playground: <bluewater-play> simulates a link under two queue disciplines, in the reader's own
// browser, each time that something is moved. Works from a folder without a server, too.
//
// Attributes: a, b        the disciplines (b = "" for one alone)
//             small       the controls named in `show` alone, and no settings of the disciplines
//             show        controls, separated by blanks
//             any control its value at the beginning
//
// A page's first one keeps its state in the address (#…), so that a link leads back to it.

(() => {
  const BASE = new URL(".", document.currentScript.src);

  // --- what can be set

  // Sliders: a place 0 … 1 becomes a value in `digits` significant digits.
  const scale = (least, most, power = 0) => ({
    within: (value) => Math.min(Math.max(value, least), most),
    value: (part) => (power ? least + (most - least) * part ** power : least * (most / least) ** part),
    part: (value) => (power ? ((value - least) / (most - least)) ** (1 / power) : Math.log(value / least) / Math.log(most / least)),
  });
  const round = (x, digits = 2) => (x > 0 ? Number(x.toPrecision(digits)) : 0);
  const CONTROLS = {
    flows: { name: "TCP connections", unit: "", ...scale(1, 400), whole: true, start: 50 },
    rate: { name: "Rate of the link", unit: "Mb/s", ...scale(1, 100), start: 20 },
    rtt: { name: "Round trip without queue", unit: "ms", ...scale(2, 400), start: 60 },
    buffer: { name: "Buffer, as time on the link (two packets at least)", unit: "ms", ...scale(5, 2000), start: 100 },
    udp: { name: "One flow without control", unit: "% of the link", ...scale(0, 150, 1), whole: true, start: 0 },
    step: { name: "More connections half-way", unit: "", ...scale(0, 400, 2), whole: true, start: 150 },
  };
  const CHOICES = {
    tcp: { name: "TCP", words: ["sack", "cubic", "prague", "dctcp"], start: "sack" },
    ecn: { name: "ECN", words: ["on", "off"], start: "on" },
  };
  const DISCIPLINES = {
    "drop-tail": { aqm: "droptail" },
    RED: { aqm: "red", signal: "p_b", sliders: { max_p: scale(0.01, 1), w_q: scale(0.0005, 0.2) }, start: { max_p: 0.1, w_q: 0.002 } },
    "RED (Feng02)": { aqm: "red", preset: "feng", signal: "p_b", sliders: { max_p: scale(0.01, 1), w_q: scale(0.0005, 0.2) }, start: { max_p: 0.1, w_q: 0.002 } },
    "Adaptive RED": { aqm: "ared", signal: "p_b", sliders: {}, start: {} },
    BLUE: { aqm: "blue", signal: "p_m", sliders: { increment: scale(0.0005, 0.1), decrement: scale(0.00005, 0.02) }, start: { increment: 0.02, decrement: 0.002 } },
    SFB: { aqm: "sfb", signal: "p_max", sliders: { increment: scale(0.0005, 0.1), decrement: scale(0.00005, 0.02) }, start: { increment: 0.005, decrement: 0.001 } },
    FRED: { aqm: "fred" },
    CHOKe: { aqm: "choke", signal: "p_b", sliders: { max_p: scale(0.01, 1) }, start: { max_p: 0.1 } },
    CoDel: { aqm: "codel", sliders: { target: scale(0.5, 100), interval: scale(10, 1000) }, unit: "ms", start: { target: 5, interval: 100 } },
    PIE: { aqm: "pie", signal: "p_d", sliders: { target: scale(1, 100) }, unit: "ms", start: { target: 15 } },
    PI2: { aqm: "pi2", signal: "p_c", sliders: {}, start: {} },
    COBALT: { aqm: "cobalt", sliders: {}, start: {} },
    DualPI2: { aqm: "dualpi2", sliders: {}, start: {} },
    "FQ-CoDel": { aqm: "fq-codel", sliders: {}, start: {} },
    DRR: { aqm: "drr", sliders: {}, start: {} },
  };
  const PICTURES = {
    "Load step (as in Feng02, Fig. 6)": { a: "RED (Feng02)", b: "BLUE", flows: 50, step: 150, rate: 20, rtt: 60, buffer: 100, udp: 0, tcp: "sack", ecn: "on" },
    "One who does not respond (as in Fig. 16)": { a: "RED", b: "SFB", flows: 100, udp: 60, step: 0, rate: 20, rtt: 60, buffer: 100, tcp: "sack", ecn: "on" },
    "A bloated buffer": { a: "drop-tail", b: "CoDel", flows: 4, udp: 0, step: 0, rate: 10, rtt: 30, buffer: 1000, tcp: "cubic", ecn: "off" },
  };
  const NEED_ECN = ["prague", "dctcp"];
  const SECONDS = 30;
  const WARMUP = 5;

  // --- a scenario, as it would be written in a file

  const toml = (state, side) => {
    const { aqm, preset, unit = "" } = DISCIPLINES[state[side]] ?? {};
    const own = Object.entries(state.params[side]).map(([key, value]) => `${key} = ${unit ? `"${value}${unit}"` : value}`);
    const params = preset ? [`preset = "${preset}"`, ...own] : own;
    const [bits, bytes] = [Math.round(state.rate * 1e6), Math.max(3000, Math.round(state.buffer * state.rate * 125))];
    const greedy = (name, flows, start) => [
      "", "[[traffic]]", `name = "${name}"`, `flows = ${flows}`, `transport = "${state.tcp}"`, `start = "${start}"`,
      `ecn = ${state.ecn === "on" || NEED_ECN.includes(state.tcp)}`,
    ];
    return [
      `duration = "${SECONDS}s"`, `warmup = "${WARMUP}s"`, "", "[network]", 'preset = "dumbbell"', `rate = "${bits}bit"`,
      `delay = "${Math.round(state.rtt * 500)}us"`, "", "[[queue]]", `aqm = "${aqm}"`, `buffer = "${bytes}B"`,
      ...(params.length ? [`params = { ${params.join(", ")} }`] : []),
      ...greedy("tcp", state.flows, "0s..1s"),
      ...(state.step ? greedy("more", state.step, `${SECONDS / 2}s`) : []),
      ...(state.udp ? ["", "[[traffic]]", 'name = "udp"', "flows = 1", 'transport = "cbr"', `rate = "${Math.round(state.udp * bits / 100)}bit"`] : []),
      "", "[measure]", 'interval = "100ms"', "",
    ].join("\n");
  };

  // --- the engine: a worker a side, which simulates the newest question only

  const worker = () => {
    let engine;
    const simulate = (text) => {
      const bytes = new TextEncoder().encode(text);
      const at = engine.reserve(bytes.length); // before its memory is looked at, which may move
      new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
      const length = engine.run();
      return JSON.parse(new TextDecoder().decode(new Uint8Array(engine.memory.buffer, engine.answer(), length)));
    };
    // Not `instantiate`, which is done later: the first question stands right behind the module.
    self.onmessage = ({ data }) => {
      if (data.module) {
        engine = new WebAssembly.Instance(data.module, {}).exports;
        return;
      }
      const began = performance.now();
      let answer;
      try {
        answer = simulate(data.text);
      } catch { // It has trapped, and is good for nothing more.
        self.postMessage({ trapped: true });
        return;
      }
      self.postMessage({ ...data, answer, ms: performance.now() - began });
    };
  };
  let module;
  const compiled = () => {
    module ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL("engine.js", BASE);
      const unpacked = async () => {
        const packed = Uint8Array.from(atob(self.BLUEWATER_ENGINE), (c) => c.charCodeAt(0));
        const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
        return WebAssembly.compile(await new Response(stream).arrayBuffer());
      };
      script.onload = () => unpacked().then(resolve, () => reject(new Error("engine.js is damaged: make docs builds it anew")));
      script.onerror = () => reject(new Error("engine.js is not there: run `rustup target add wasm32-unknown-unknown`, then `make docs`"));
      document.head.append(script);
    });
    return module;
  };

  const PATIENCE = 20_000; // ms
  const PATIENCE_OVERTAKEN = 2_000; // ms, once there is another question

  class Engine {
    constructor(done) {
      this.done = done;
      this.next = null;
      this.begin();
    }

    /** A worker of its own; anew after one that trapped, or ran for too long. */
    begin() {
      this.busy = true;
      const source = new Blob([`(${worker})()`], { type: "text/javascript" });
      this.worker = new Worker(URL.createObjectURL(source));
      this.worker.onmessage = ({ data }) => (data.trapped ? this.again("more than the simulator has room for in a page") : this.free(data));
      this.ready = compiled().then((wasm) => {
        this.worker.postMessage({ module: wasm });
        this.busy = false;
        this.go();
      });
    }

    /** Ends the worker, and says why; without a message the next question says enough. */
    again(message) {
      const asked = this.asked;
      this.worker.terminate();
      this.timers.forEach(clearTimeout);
      this.begin();
      if (message) this.done({ ...asked, answer: { error: { message } } });
    }

    free(data) {
      this.timers.forEach(clearTimeout);
      this.busy = false;
      this.done(data);
      this.go();
    }

    ask(question) {
      this.next = question;
      if (this.busy && this.asked && !this.overtaken) {
        this.overtaken = true;
        this.timers.push(setTimeout(() => this.again(), this.since + PATIENCE_OVERTAKEN - performance.now()));
      }
      this.go();
    }

    go() {
      if (this.busy || !this.next) return;
      this.busy = true;
      [this.asked, this.next] = [this.next, null];
      [this.since, this.overtaken] = [performance.now(), false];
      this.timers = [setTimeout(() => this.again(`not done in ${PATIENCE / 1000} s`), PATIENCE)];
      this.worker.postMessage(this.asked);
    }
  }

  // --- pictures

  const plain = (x) => (!Number.isFinite(x) ? "–" : x !== 0 && Math.abs(x) < 1e-5 ? x.toExponential(1) : x.toPrecision(Math.abs(x) >= 100 ? 4 : 3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
  const ceiling = (x) => {
    const step = 10 ** Math.floor(Math.log10(x));
    return x > 0 ? ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((m) => m * step >= x) ?? 10) * step : 1;
  };
  const draw = (canvas, lines, { unit, top: fixed }) => {
    const style = getComputedStyle(canvas);
    const ratio = self.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    // What happens at the start alone would press all the rest to the ground.
    const settled = ({ time, values }) => values.filter((value, i) => time[i] >= WARMUP && Number.isFinite(value));
    const top = fixed ?? ceiling(Math.max(...lines.flatMap(settled), 0));
    const [left, right, above, below] = [4, width - 4, 16, height - 16];
    const x = (time) => left + (right - left) * time / SECONDS;
    const y = (value) => below - (below - above) * Math.min(value / top, 1);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = style.getPropertyValue("--quiet");
    pen.strokeStyle = style.getPropertyValue("--grid");
    for (const part of [0, 0.5, 1]) {
      pen.beginPath();
      pen.moveTo(left, Math.round(y(part * top)) + 0.5);
      pen.lineTo(right, Math.round(y(part * top)) + 0.5);
      pen.stroke();
    }
    pen.fillText(`${plain(top)} ${unit}`, left, above - 4);
    pen.fillText("0 s", left, height - 3);
    pen.textAlign = "right";
    pen.fillText(`${SECONDS} s`, right, height - 3);
    pen.lineWidth = width < 200 ? 1 : 1.6; // or the swings of a small one are one block
    pen.lineJoin = "round";
    for (const { side, time, values } of lines) {
      pen.strokeStyle = style.getPropertyValue(`--${side}`);
      pen.setLineDash(side === "b" ? [5, 3] : []);
      pen.beginPath();
      values.forEach((value, i) => pen[i ? "lineTo" : "moveTo"](x(time[i]), y(value)));
      pen.stroke();
    }
    pen.setLineDash([]);
  };

  // --- what is shown of an answer

  const jain = (shares) => {
    const sum = shares.reduce((all, one) => all + one, 0);
    const squares = shares.reduce((all, one) => all + one * one, 0);
    return squares ? sum * sum / (shares.length * squares) : NaN;
  };
  const NUMBERS = [
    ["Link used", (r) => [100 * r.queue("utilisation"), "%"]],
    ["Queue, mean", (r) => [1e3 * r.queue("delay_mean_s"), "ms"]],
    ["Queue, 99th percentile", (r) => [1e3 * r.queue("delay_p99_s"), "ms"]],
    ["Lost", (r) => [100 * r.queue("loss"), "%"]],
    ["Marked", (r) => [100 * r.queue("mark_rate"), "%"]],
    ["Fairness (Jain) of TCP from the start", (r) => [jain(r.goodput("tcp")), ""]],
    ["TCP, all together", (r) => [[...r.goodput("tcp"), ...r.goodput("more")].reduce((a, b) => a + b, 0) / 1e6, "Mb/s"]],
    ["The flow without control", (r) => [(r.goodput("udp")[0] ?? NaN) / 1e6, "Mb/s"]],
    ["The flow without control loses", (r) => [100 * r.lost("udp"), "%"]],
  ];
  const CHARTS = [
    ["Queue", (r, state) => r.series.backlog_bytes.map((bytes) => bytes * 8e-3 / state.rate), { unit: "ms", small: true }],
    ["Link used", (r) => r.series.idle_s.map((idle) => 100 * (1 - idle / 0.1)), { unit: "%", top: 100 }],
    ["Lost", (r) => r.share("drops"), { unit: "%", small: true }],
    ["Marked", (r) => (r.queue("marks") ? r.share("marks") : []), { unit: "%", small: true }],
    ["Its own signal", (r, state, side) => r.series[DISCIPLINES[state[side]].signal] ?? [], { unit: "" }],
  ];
  const reader = (answer) => ({
    hash: answer.decision_hash,
    series: answer.series,
    share: (what) => answer.series[what].map((n, i) => {
      // As the simulator has `loss`: what waited before may be dropped when less arrives.
      const { arrivals, departures, drops } = answer.series;
      return 100 * n / ((n > arrivals[i] ? Math.max(departures[i] + drops[i], n) : arrivals[i]) || 1);
    }),
    queue: (column) => answer.queues[column]?.[0] ?? NaN,
    lost: (group) => answer.flows.loss[answer.flows.group.indexOf(group)] ?? NaN,
    goodput: (group) => answer.flows.goodput_bps.filter((_, i) => answer.flows.group[i] === group),
  });

  // --- the element

  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  let count = 0;

  class Play extends HTMLElement {
    connectedCallback() {
      if (this.state) return;
      this.number = count++;
      this.small = this.hasAttribute("small");
      this.sides = this.getAttribute("b") === "" ? ["a"] : ["a", "b"];
      this.begin();
      this.build();
      this.engines = Object.fromEntries(this.sides.map((side) => [side, new Engine((data) => this.answered(side, data))]));
      Promise.all(Object.values(this.engines).map((engine) => engine.ready)).catch((error) => { this.status.textContent = error.message; });
      this.changed();
      new ResizeObserver(() => this.show()).observe(this);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
      if (this.addressed) {
        addEventListener("hashchange", ({ newURL }) => {
          const { hash } = new URL(newURL); // the address may have been written anew since
          if (!hash.includes("=")) return; // a place in the page
          this.begin(hash);
          this.build();
          this.changed();
        });
      }
    }

    /** Whether the address is that of this one. */
    get addressed() {
      return !this.small && this.number === 0;
    }

    /** The state that the page and its address ask for; no answers. */
    begin(hash = location.hash) {
      this.state = { a: this.getAttribute("a") ?? "RED", b: this.getAttribute("b") ?? "BLUE", params: {} };
      for (const [key, { start, unit }] of Object.entries({ ...CONTROLS, ...CHOICES })) {
        const given = this.getAttribute(key);
        this.state[key] = given === null ? start : unit === undefined ? given : Number(given);
      }
      this.defaults();
      if (!this.small) this.fromAddress(hash);
      this.answers = {};
      this.refused = {};
    }

    defaults(sides = this.sides) {
      for (const side of sides) this.state.params[side] = { ...DISCIPLINES[this.state[side]].start };
    }

    fromAddress(hash) {
      const given = new URLSearchParams(hash.slice(1));
      for (const side of this.sides) if (Object.hasOwn(DISCIPLINES, given.get(side))) this.state[side] = given.get(side);
      this.defaults();
      const number = (value, { within, whole }) => (whole ? Math.round(within(Number(value))) : within(Number(value)));
      for (const [key, value] of given) {
        const [side, name] = key.split(".");
        const sliders = this.sides.includes(side) ? DISCIPLINES[this.state[side]].sliders ?? {} : {};
        const good = /^[-+.\de]+$/i.test(value) && Number.isFinite(Number(value));
        if (Object.hasOwn(CONTROLS, key) && good) this.state[key] = number(value, CONTROLS[key]);
        else if (Object.hasOwn(CHOICES, key) && CHOICES[key].words.includes(value)) this.state[key] = value;
        else if (name && Object.hasOwn(sliders, name) && good) this.state.params[side][name] = number(value, sliders[name]);
      }
    }

    toAddress() {
      const { params, ...rest } = this.state;
      const words = new URLSearchParams(rest);
      for (const side of this.sides) for (const [name, value] of Object.entries(params[side])) words.set(`${side}.${name}`, value);
      history.replaceState(null, "", `#${words}`);
    }

    slider(id, name, unit, { value, part, within, whole }, now, set) {
      const output = make("output", { textContent: `${plain(now)} ${unit}`, htmlFor: id });
      const input = make("input", { type: "range", id, min: 0, max: 1000, value: Math.round(1000 * part(now)) });
      output.setAttribute("aria-live", "off"); // the slider says it
      const say = (x) => {
        output.textContent = `${plain(x)} ${unit}`;
        input.setAttribute("aria-valuetext", output.textContent);
      };
      say(now);
      const move = (x) => {
        now = x;
        say(x);
        set(x);
        this.changed();
      };
      input.addEventListener("input", () => move(whole ? Math.round(value(input.value / 1000)) : round(value(input.value / 1000))));
      // A key is a step that one can see: one more, or a hundredth of the slider, and as many of these as it
      // takes to another number in so few digits.
      const beside = (by) => {
        if (whole) return within(now + by);
        for (let step = 1; step <= 100; step++) {
          const x = round(value(Math.min(Math.max(part(now) + by * step / 100, 0), 1)));
          if (x !== now) return x;
        }
        return now;
      };
      input.addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        const x = beside(by);
        input.value = Math.round(1000 * part(x));
        move(x);
      });
      return make("div", { className: "control" }, make("label", { htmlFor: id, textContent: name }), input, output);
    }

    select(id, name, words, now, set) {
      const input = make("select", { id }, ...words.map((word) => make("option", { textContent: word, value: word, selected: word === now })));
      input.addEventListener("change", () => {
        set(input.value);
        this.changed();
      });
      return make("div", { className: "control" }, make("label", { htmlFor: id, textContent: name }), input);
    }

    build() {
      const id = (key) => `play${this.number}-${key}`;
      const shown = this.small ? (this.getAttribute("show") ?? "flows").split(" ") : [...Object.keys(CONTROLS), ...Object.keys(CHOICES)];
      const controls = shown.map((key) => (CONTROLS[key]
        ? this.slider(id(key), CONTROLS[key].name, CONTROLS[key].unit, CONTROLS[key], this.state[key], (x) => { this.state[key] = x; })
        : this.select(id(key), CHOICES[key].name, CHOICES[key].words, this.state[key], (x) => {
          this.state[key] = x;
          this.build();
          this.querySelector(`#${id(key)}`).focus();
        })));
      const ecn = controls[shown.indexOf("ecn")]?.querySelector("select");
      if (ecn && NEED_ECN.includes(this.state.tcp)) {
        [ecn.value, ecn.disabled] = ["on", true];
        ecn.title = `${this.state.tcp} needs it`;
      }
      const key = (side) => make("span", { className: `key ${side}` });
      const legend = this.sides.map((side) => make("strong", {}, key(side), this.state[side]));
      const sides = this.small ? [] : this.sides.map((side) => {
        const { sliders = {}, unit = "" } = DISCIPLINES[this.state[side]];
        const choose = this.select(id(side), side === "a" ? "Discipline" : "beside it", Object.keys(DISCIPLINES), this.state[side], (x) => {
          this.state[side] = x;
          delete this.answers[side];
          this.defaults([side]);
          this.build();
          this.querySelector(`#${id(side)}`).focus();
        });
        choose.prepend(key(side));
        const own = Object.entries(sliders).map(([name, range]) => (
          this.slider(id(`${side}-${name}`), name, unit, range, this.state.params[side][name], (x) => { this.state.params[side][name] = x; })));
        const box = make("div", { className: "side" }, choose, ...own);
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", `${this.state[side]}, ${side === "a" ? "first" : "second"}`);
        return box;
      });
      this.charts = CHARTS.filter((chart) => !this.small || chart[2].small).map(([name, values, options]) => {
        const canvas = make("canvas");
        canvas.setAttribute("role", "img");
        return { name, values, options, canvas, box: make("figure", {}, make("figcaption", { textContent: name }), canvas) };
      });
      this.table = make("tbody");
      const head = make("tr", {}, make("td"), ...this.sides.map((side) => make("th", { scope: "col", textContent: this.state[side] })));
      const pictures = Object.entries(PICTURES).map(([name, picture], at) => {
        const button = make("button", { type: "button", textContent: name });
        button.addEventListener("click", () => {
          Object.assign(this.state, picture);
          this.answers = {};
          this.defaults();
          this.build();
          this.querySelectorAll(".buttons button")[at].focus();
          this.changed();
        });
        return button;
      });
      const files = this.sides.map((side) => {
        const button = make("button", { type: "button", textContent: `${this.state[side]} as TOML` });
        button.addEventListener("click", () => this.download(side));
        return button;
      });
      this.status = make("p", { className: "status", textContent: this.runs ? "" : "Loading the simulator …" });
      this.status.setAttribute("role", "status");
      this.replaceChildren(
        ...(this.small ? [] : [make("div", { className: "buttons" }, ...pictures)]),
        make("div", { className: "legend" }, ...legend),
        make("div", { className: "charts" }, ...this.charts.map((chart) => chart.box)),
        make("div", { className: "controls" }, ...controls),
        make("div", { className: "sides" }, ...sides),
        make("div", { className: "numbers" }, make("table", {}, make("thead", {}, head), this.table)),
        ...(this.small ? [] : [make("div", { className: "buttons" }, ...files)]),
        this.status,
      );
      this.show();
    }

    changed() {
      for (const side of this.sides) this.engines?.[side]?.ask({ text: toml(this.state, side) });
      this.say();
      if (this.addressed) {
        clearTimeout(this.later);
        this.later = setTimeout(() => this.toAddress(), 300);
      }
    }

    answered(side, { text, answer, ms }) {
      if (answer.error && text !== toml(this.state, side)) return; // of what was set before
      delete this.refused[side];
      if (answer.error) {
        const { key, value, problem, allowed, message } = answer.error;
        this.refused[side] = message ?? `${key} = ${value}: ${problem}${allowed && `; allowed: ${allowed}`}`;
        delete this.answers[side];
      } else {
        this.answers[side] = { ...reader(answer), text, ms };
      }
      this.runs = (this.runs ?? 0) + 1;
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.show();
      });
    }

    show() {
      const known = this.sides.filter((side) => this.answers[side]);
      this.say();
      if (!known.length) {
        this.table.replaceChildren();
        return;
      }
      for (const { name, values, options, canvas, box } of this.charts) {
        const lines = known.map((side) => {
          const answer = this.answers[side];
          return { side, time: answer.series.time_s, values: values(answer, this.state, side) };
        }).filter((line) => line.values.length);
        box.hidden = !lines.length;
        draw(canvas, lines, options);
        const last = lines.map((line) => `${this.state[line.side]} ${plain(line.values.at(-1))} ${options.unit}`).join(", ");
        canvas.setAttribute("aria-label", `${name}, ${SECONDS} s; at the end ${last}`);
      }
      const rows = NUMBERS.map(([name, number]) => {
        const values = this.sides.map((side) => (this.answers[side] ? number(this.answers[side]) : [NaN, ""]));
        if (values.every(([value]) => !Number.isFinite(value))) return null;
        return make("tr", {}, make("th", { scope: "row", textContent: name }),
          ...values.map(([value, unit]) => make("td", { textContent: `${plain(value)} ${unit}` })));
      });
      this.table.replaceChildren(...rows.filter(Boolean));
    }

    /** The answer of a side, if it is to what is set now. */
    current(side) {
      const answer = this.answers[side];
      return answer?.text === toml(this.state, side) ? answer : undefined;
    }

    /** What there is to say of what is shown; what belongs to other settings turns pale. */
    say() {
      const answers = this.sides.map((side) => this.current(side));
      const refused = this.sides.filter((side) => this.refused[side]).map((side) => `${this.state[side]}: ${this.refused[side]}`);
      this.classList.toggle("stale", !answers.every(Boolean));
      if (refused.length) this.status.textContent = refused.join("; ");
      else if (answers.every(Boolean)) {
        const said = this.sides.map((side, i) => `${this.state[side]} ${answers[i].hash}`).join(", ");
        const ms = Math.max(...answers.map((answer) => answer.ms));
        this.status.textContent = `${SECONDS} s in ${ms.toFixed(0)} ms, here in this page. Decision hash: ${said}`;
      } else if (this.runs && !this.slow) {
        this.slow = setTimeout(() => {
          this.slow = 0;
          if (!this.sides.every((side) => this.current(side) || this.refused[side])) this.status.textContent = "Simulating …";
        }, 300);
      }
    }

    download(side) {
      const hash = this.current(side)?.hash;
      const text = `${hash ? `# bluewater run FILE says ${hash}, too\n` : ""}${toml(this.state, side)}`;
      const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "application/toml" })), download: `${DISCIPLINES[this.state[side]].aqm}.toml` });
      link.click();
      URL.revokeObjectURL(link.href);
    }

    /** For tests: the scenario of a side, what the table tells of an answer, and the simulator itself. */
    scenario(side) {
      return toml(this.state, side);
    }

    told(answer) {
      return Object.fromEntries(NUMBERS.map(([name, number]) => [name, number(reader(answer))[0]]));
    }

    simulate(text) {
      return new Promise((resolve) => {
        const engine = new Engine((data) => resolve(data.answer));
        engine.ask({ text });
      });
    }
  }

  customElements.define("bluewater-play", Play);
})();
