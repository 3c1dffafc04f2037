// Waits until dequeue may have something, without polling: LISTEN, and a registration that makes producers notify.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import pg from "pg";

const REGISTERED_FOR_MS = 30_000;
// Without LISTEN, for example behind a pooler that does not support it.
const POLL_MS = 1_000;
// The longest pause while a transaction is open that may not have seen the registration.
const MAX_SETTLING_MS = 250;

export const pause = (ms, signal) => sleep(Math.max(0, ms), undefined, { signal }).catch(() => {});

export class Sleeper {
  #client = null;
  #name = `sleeper-${randomUUID()}`;
  #registeredUntil = 0;
  // Transactions below this one may not have seen the registration.
  #unawareBelow = null;
  #settlingMs = 1;
  #isNotified = false;
  #wake = () => {};

  constructor(queue) {
    this.queue = queue;
  }

  // Wait for at most `longestMs`, after an empty dequeue. It may return early, so dequeue again in any case.
  async wait(longestMs, signal) {
    try {
      await this.#listen();
      const now = performance.now();
      if (this.#registeredUntil <= now) {
        await this.#register();
        this.#unawareBelow = BigInt((await this.#call("queue_horizon()"))[0].newest);
        this.#settlingMs = 1;
        return;
      }
      if (this.#unawareBelow !== null) {
        if (BigInt((await this.#call("queue_horizon()"))[0].oldest) >= this.#unawareBelow) {
          this.#unawareBelow = null;
          return;
        }
        longestMs = Math.min(longestMs, this.#settlingMs);
        this.#settlingMs = Math.min(this.#settlingMs * 2, MAX_SETTLING_MS);
      } else if (this.#registeredUntil - now < REGISTERED_FOR_MS / 2) {
        const until = this.#registeredUntil;
        await this.#register();
        // The old registration expired before the new one was committed: start again.
        if (performance.now() >= until) this.#registeredUntil = 0;
      }
      await this.#notified(Math.min(longestMs, this.#registeredUntil - performance.now()), signal);
    } catch (error) {
      console.error(`polling, because LISTEN failed: ${error.message}`);
      await this.close();
      await pause(Math.min(longestMs, POLL_MS), signal);
    }
  }

  // Withdraw the registration, and close the connection.
  async close() {
    const client = this.#client;
    this.#client = null;
    this.#registeredUntil = 0;
    if (client === null) return;
    await this.#call("sleeper_clear($1)", [this.#name], client).catch(() => {});
    // If the server is silent, its answer may never come.
    await Promise.race([client.end().catch(() => {}), pause(1_000)]);
  }

  async #listen() {
    if (this.#client !== null) return;
    const client = new pg.Client(this.queue.pool.options);
    // Otherwise an error of a connection ends the process.
    client.on("error", () => {});
    client.on("notification", () => this.#notify());
    client.on("end", () => {
      if (this.#client === client) this.#client = null;
      this.#registeredUntil = 0;
      this.#notify();
    });
    await client.connect();
    try {
      const [{ queue_event: event }] = await this.#call("queue_event()", [], client);
      await client.query(`listen ${pg.escapeIdentifier(event)}`);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    this.#client = client;
    this.#registeredUntil = 0;
  }

  async #register() {
    const began = performance.now();
    await this.#call("sleeper_register($1, $2)", [this.#name, REGISTERED_FOR_MS]);
    this.#registeredUntil = began + REGISTERED_FOR_MS;
  }

  #notify() {
    this.#isNotified = true;
    this.#wake();
  }

  async #notified(withinMs, signal) {
    if (!this.#isNotified && this.#client !== null && withinMs > 0 && !signal.aborted) {
      let timer;
      await new Promise((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, withinMs);
        signal.addEventListener("abort", resolve);
      });
      // Nothing of a wait may be left, because a worker waits as long as it lives.
      signal.removeEventListener("abort", this.#wake);
      clearTimeout(timer);
    }
    this.#isNotified = false;
  }

  #call(call, values = [], client = this.#client) {
    return this.queue.call(call, values, client);
  }
}
