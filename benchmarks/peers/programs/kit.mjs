// What the programs of all peers in Node share; kit.py is its twin, and says what the words mean.

import { openSync, readSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const FLUSH_MS = 20;
const EVENTS_PER_LINE = 40;
const PAD = "x".repeat(60);

export const order = JSON.parse(process.env.LONNYMQ_BENCH_ORDER);
// The peer is not installed beside this file, but in an environment of its own.
export const require = createRequire(process.env.PEER_MODULES);

const nowNs = () => Number(process.hrtime.bigint());
const message = (tag, number = 0) => {
  const part = order.is_uneven ? 0.5 + (number % 11) / 10 : 1;
  return { tag, sleep_ms: Math.round(order.sleep_ms * part), pad: PAD };
};

class Meter {
  count = 0;
  said = 0;
  events = [];
  // Who may be killed says everything at once.
  isPrompt = order.lease_s !== null;
  pipe = openSync(order.meter, "w");

  constructor() {
    setInterval(() => this.report(), FLUSH_MS).unref();
  }

  began(tag) {
    this.count += 1;
    this.note(tag, 0);
  }

  ended(tag) {
    this.note(tag, 1);
  }

  note(tag, isEnd) {
    if (!order.is_traced) return;
    const event = [nowNs(), tag, isEnd];
    if (this.isPrompt) this.say({ events: [event] });
    else this.events.push(event);
  }

  say(words) {
    writeSync(this.pipe, JSON.stringify({ pid: process.pid, ...words }) + "\n");
  }

  report() {
    const events = this.events;
    this.events = [];
    for (let start = 0; start < events.length; start += EVENTS_PER_LINE) {
      this.say({ events: events.slice(start, start + EVENTS_PER_LINE) });
    }
    if (!order.is_traced && this.count !== this.said) {
      this.said = this.count;
      this.say({ at: nowNs(), count: this.said });
    }
  }
}

const meter = order.do === "work" ? new Meter() : null;

export function waitForGo() {
  meter.say({ is_ready: true });
  readSync(0, Buffer.alloc(16));
}

export async function handle(payload) {
  meter.began(payload.tag);
  if (payload.sleep_ms) await sleep(payload.sleep_ms);
  meter.ended(payload.tag);
}

function* messages() {
  for (const [tenant, count] of order.groups) {
    for (let number = 0; number < count; number += 1) yield [tenant, message(`${tenant}/${number}`, number)];
  }
}

export async function send(one, many, atOnce = 1000) {
  if (order.how === "bulk") return sendBatches(many, atOnce);
  const all = [...messages()];
  const beganNs = nowNs();
  const cpu = process.cpuUsage();
  if (order.how === "paced") {
    for (const [number, [tenant]] of all.entries()) {
      const waitMs = (beganNs + (number / order.per_s) * 1e9 - nowNs()) / 1e6;
      if (waitMs > 0) await sleep(waitMs);
      await one(tenant, message(String(nowNs())));
    }
  } else {
    for (const [tenant, payload] of all) await one(tenant, payload);
  }
  finished(all.length, nowNs() - beganNs, process.cpuUsage(cpu));
}

async function sendBatches(many, atOnce) {
  let count = 0;
  let tookNs = 0;
  const spent = { user: 0, system: 0 };
  for (const batch of batched(atOnce)) {
    const beganNs = nowNs();
    const cpu = process.cpuUsage();
    await many(batch);
    count += batch.length;
    tookNs += nowNs() - beganNs;
    const { user, system } = process.cpuUsage(cpu);
    spent.user += user;
    spent.system += system;
    if (order.window_s !== null && tookNs > order.window_s * 1e9) break;
  }
  finished(count, tookNs, spent);
}

function* batched(size) {
  let batch = [];
  for (const one of messages()) {
    batch.push(one);
    if (batch.length === size) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length) yield batch;
}

function finished(count, tookNs, spent) {
  console.log(JSON.stringify({ count, took_s: tookNs / 1e9, cpu_s: (spent.user + spent.system) / 1e6 }));
}
