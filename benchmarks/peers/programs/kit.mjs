// Shared by the Node programs of all peers; the counterpart of kit.py, which documents the command's fields.

import { openSync, readSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const FLUSH_MS = 20;
const EVENTS_PER_LINE = 40;
const PAD = "x".repeat(60);

export const command = JSON.parse(process.env.LONNYMQ_BENCH_COMMAND);
// The peer is installed in an environment of its own, not beside this file.
export const require = createRequire(process.env.PEER_MODULES);

const nowNs = () => Number(process.hrtime.bigint());
const message = (tag, number = 0) => {
  const part = command.is_uneven ? 0.5 + (number % 11) / 10 : 1;
  return { tag, sleep_ms: Math.round(command.sleep_ms * part), pad: PAD };
};

class ProgressWriter {
  count = 0;
  written = 0;
  events = [];
  // A process that may be killed reports each event immediately.
  isImmediate = command.lease_s !== null;
  pipe = openSync(command.progress_pipe, "w");

  constructor() {
    setInterval(() => this.flush(), FLUSH_MS).unref();
  }

  messageBegan(tag) {
    this.count += 1;
    this.addEvent(tag, 0);
  }

  messageEnded(tag) {
    this.addEvent(tag, 1);
  }

  addEvent(tag, isEnd) {
    if (!command.is_traced) return;
    const event = [nowNs(), tag, isEnd];
    if (this.isImmediate) this.write({ events: [event] });
    else this.events.push(event);
  }

  write(fields) {
    writeSync(this.pipe, JSON.stringify({ pid: process.pid, ...fields }) + "\n");
  }

  flush() {
    const events = this.events;
    this.events = [];
    for (let start = 0; start < events.length; start += EVENTS_PER_LINE) {
      this.write({ events: events.slice(start, start + EVENTS_PER_LINE) });
    }
    if (!command.is_traced && this.count !== this.written) {
      this.written = this.count;
      this.write({ at: nowNs(), count: this.written });
    }
  }
}

const writer = command.action === "work" ? new ProgressWriter() : null;

export function waitForGo() {
  writer.write({ is_ready: true });
  readSync(0, Buffer.alloc(16));
}

export async function handle(payload) {
  writer.messageBegan(payload.tag);
  if (payload.sleep_ms) await sleep(payload.sleep_ms);
  writer.messageEnded(payload.tag);
}

function* messages() {
  for (const [tenant, count] of command.groups) {
    for (let number = 0; number < count; number += 1) yield [tenant, message(`${tenant}/${number}`, number)];
  }
}

export async function send(one, many, batchSize = 1000) {
  if (command.mode === "bulk") return sendBatches(many, batchSize);
  const all = [...messages()];
  const beganNs = nowNs();
  const cpu = process.cpuUsage();
  if (command.mode === "paced") {
    for (const [number, [tenant]] of all.entries()) {
      const waitMs = (beganNs + (number / command.per_s) * 1e9 - nowNs()) / 1e6;
      if (waitMs > 0) await sleep(waitMs);
      await one(tenant, message(String(nowNs())));
    }
  } else {
    for (const [tenant, payload] of all) await one(tenant, payload);
  }
  printResult(all.length, nowNs() - beganNs, process.cpuUsage(cpu));
}

async function sendBatches(many, batchSize) {
  let count = 0;
  let tookNs = 0;
  const spent = { user: 0, system: 0 };
  for (const batch of batches(batchSize)) {
    const beganNs = nowNs();
    const cpu = process.cpuUsage();
    await many(batch);
    count += batch.length;
    tookNs += nowNs() - beganNs;
    const { user, system } = process.cpuUsage(cpu);
    spent.user += user;
    spent.system += system;
    if (command.window_s !== null && tookNs > command.window_s * 1e9) break;
  }
  printResult(count, tookNs, spent);
}

function* batches(size) {
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

function printResult(count, tookNs, spent) {
  console.log(JSON.stringify({ count, took_s: tookNs / 1e9, cpu_s: (spent.user + spent.system) / 1e6 }));
}
