// The loop of a worker: lease messages, run a handler for each, and say how each attempt ended.
import { inspect } from "node:util";

import { Sleeper, pause } from "./sleeper.mjs";

// Thrown by a handler: never try this message again.
export class Bury extends Error {
  name = "Bury";
}
// The lease has ended, so another worker may be processing the message.
export class LeaseLost extends Error {
  name = "LeaseLost";
}

// Errors of PostgreSQL that may not occur again: connections, shutdowns, resources, deadlocks, lock timeouts.
const MAY_PASS = /^(08|40|53|57)...$|^55P03$/;
const isRefused = (error) => /^[0-9A-Z]{5}$/.test(error.code) && !MAY_PASS.test(error.code);

class Message {
  isCompleted = false;
  isGivenBack = false;
  #queue;
  #abort = new AbortController();

  constructor(queue, row, leasedUntil) {
    this.#queue = queue;
    Object.assign(this, row);
    this.leasedUntil = leasedUntil;
    // Aborted once the handler should stop: its lease is lost, or the worker ends.
    this.signal = this.#abort.signal;
  }

  get payload() {
    try {
      return JSON.parse(this.content);
    } catch (error) {
      throw new Bury(`the content is not JSON: ${error.message}`);
    }
  }

  // Complete in a transaction of the handler, so that its changes are made once, although messages may be repeated.
  async completeIn(client) {
    const outcome = await this.#queue.complete(this, client);
    if (outcome !== "completed") throw new LeaseLost(outcome);
    this.isCompleted = true;
  }

  stop(reason) {
    this.#abort.abort(reason);
  }
}

export class Worker {
  #held = new Map();
  #stopped = new AbortController();
  #slotIsFree = () => {};

  constructor(queue, handle, settings = {}) {
    this.queue = queue;
    this.handle = handle;
    this.settings = {
      name: `node-${process.pid}`,
      concurrency: 4,
      leaseMs: 30_000,
      shutdownMs: 20_000,
      retryMs: (attempt) => Math.min(60_000, 1_000 * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2),
      ...settings,
    };
  }

  // Lease nothing any more; run() then ends.
  stop() {
    this.#stopped.abort();
    this.#slotIsFree();
  }

  async run() {
    const sleeper = new Sleeper(this.queue);
    const ended = new AbortController();
    const heartbeats = this.#sendHeartbeats(ended.signal);
    while (!this.#stopped.signal.aborted) {
      const free = this.settings.concurrency - this.#held.size;
      if (free > 0) await this.#fetch(free, sleeper);
      else await new Promise((resolve) => (this.#slotIsFree = resolve));
    }
    await sleeper.close();
    await this.#finish();
    ended.abort();
    await heartbeats;
  }

  async #fetch(free, sleeper) {
    const { name, leaseMs } = this.settings;
    const askedAt = performance.now();
    try {
      const reply = await this.queue.dequeue(free, leaseMs, name);
      const messages = reply.messages.map((row) => new Message(this.queue, row, askedAt + leaseMs));
      // What arrives after stop() is not started.
      if (this.#stopped.signal.aborted) return await this.#giveBack(messages);
      for (const message of messages) this.#start(message);
      if (reply.outcome === "empty") await sleeper.wait(Number(reply.wait_ms), this.#stopped.signal);
      if (reply.outcome === "busy") await pause(1 + Math.random() * 20, this.#stopped.signal);
    } catch (error) {
      console.error(`dequeue: ${error.message}`);
      await pause(500 + Math.random() * 500, this.#stopped.signal);
    }
  }

  #start(message) {
    this.#held.set(message.token, message);
    this.#run(message)
      .catch((error) => console.error(`message ${message.message_id}: ${inspect(error)}`))
      .finally(() => {
        this.#held.delete(message.token);
        this.#slotIsFree();
      });
  }

  async #run(message) {
    let failure;
    try {
      // Read only now, so that no more contents are in memory than there are slots.
      if (message.content === null) Object.assign(message, await this.queue.read(message));
      if (message.content === null) throw new LeaseLost("before it was read");
      await this.handle(message);
    } catch (error) {
      failure = error ?? new Error(`the handler threw ${error}`);
    }
    if (message.isGivenBack) return;
    if (failure) console.error(`message ${message.message_id}: ${inspect(failure)}`);
    const outcome = await this.#acknowledge(message, failure);
    if (outcome) console.log(`message ${message.message_id}, attempt ${message.attempt}: ${outcome}`);
  }

  // Say how the attempt ended, until the queue has answered. If an answer was lost, the next one is lease_lost.
  async #acknowledge(message, failure) {
    for (let delayMs = 20; ; delayMs = Math.min(delayMs * 2, 1_000)) {
      try {
        const outcome = await this.#end(message, failure);
        if (outcome !== "busy") return outcome;
      } catch (error) {
        console.error(`message ${message.message_id}: ${error.message}`);
        if (isRefused(error)) return "refused: its lease will expire";
      }
      if (performance.now() > message.leasedUntil) return "lease_lost";
      await pause(delayMs);
    }
  }

  #end(message, failure) {
    if (failure instanceof Bury) return this.queue.bury(message, inspect(failure));
    if (failure) return this.queue.defer(message, Math.round(this.settings.retryMs(message.attempt)), inspect(failure));
    return message.isCompleted ? "completed" : this.queue.complete(message);
  }

  async #sendHeartbeats(ended) {
    while (!ended.aborted) {
      await pause(this.settings.leaseMs / 3, ended);
      const messages = [...this.#held.values()];
      if (messages.length === 0) continue;
      const askedAt = performance.now();
      try {
        const outcomes = await this.queue.heartbeat(messages, this.settings.leaseMs);
        for (const [position, message] of messages.entries()) {
          const outcome = outcomes[position];
          if (outcome === "extended") message.leasedUntil = askedAt + this.settings.leaseMs;
          // A cancelled message keeps its lease until its attempt is acknowledged, which happens when the handler ends.
          if (outcome === "lease_lost" || outcome === "cancelled") message.stop(new LeaseLost(outcome));
        }
      } catch (error) {
        console.error(`heartbeat: ${error.message}`);
      }
      for (const message of messages) {
        if (performance.now() > message.leasedUntil) message.stop(new LeaseLost("the queue did not answer"));
      }
    }
  }

  // Wait for the handlers; what still runs at the deadline is given back, which costs no attempt.
  async #finish() {
    const deadline = new AbortController();
    pause(this.settings.shutdownMs, deadline.signal).then(() => this.#slotIsFree(deadline.abort()));
    while (this.#held.size > 0 && !deadline.signal.aborted) {
      await new Promise((resolve) => (this.#slotIsFree = resolve));
    }
    deadline.abort();
    await this.#giveBack(this.#held.values());
  }

  async #giveBack(messages) {
    for (const message of messages) {
      message.isGivenBack = true;
      message.stop(new LeaseLost("the worker ends"));
      const outcome = await this.queue.giveBack(message).catch((error) => error.message);
      console.log(`message ${message.message_id}, attempt ${message.attempt}: ${outcome}`);
    }
  }
}
