// A worker that writes receipts of orders, in the transactions that complete their messages.

import process from "node:process";

import pg from "pg";

import { Queue } from "./queue.mjs";
import { Bury, Worker } from "./worker.mjs";

const CONCURRENCY = 4;
const settings = { concurrency: CONCURRENCY };
if (process.env.LEASE_MS) settings.leaseMs = Number(process.env.LEASE_MS);
if (process.env.SHUTDOWN_MS) settings.shutdownMs = Number(process.env.SHUTDOWN_MS);

// For each slot one connection of its handler, and a few for the worker.
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: CONCURRENCY + 3,
  connectionTimeoutMillis: 10_000,
  keepAlive: true,
});
const queue = new Queue(pool, process.env.LONNYMQ_SCHEMA);

const steps = {
  async receipt(message, { order }) {
    if (!Number.isInteger(order)) throw new Bury(`order must be an integer, not ${JSON.stringify(order)}`);
    await queue.transaction(async (client) => {
      await client.query("insert into receipt (order_id, attempt) values ($1, $2)", [order, message.attempt]);
      // With the headers of this message, so that a trace continues.
      await queue.create(message.channel, { step: "mail", order }, { client, headers: message.headers });
      await message.completeIn(client);
    });
  },

  // Completed by the worker, after it returns. If that fails, the mail is sent again.
  async mail(message, { order }) {
    const values = [order, message.channel, message.headers?.traceparent];
    await pool.query("insert into mail (order_id, channel, traceparent) values ($1, $2, $3)", values);
  },
};

const worker = new Worker(
  queue,
  async (message) => {
    const { step, ...details } = message.payload ?? {};
    if (!Object.hasOwn(steps, step)) throw new Bury(`there is no step ${JSON.stringify(step)}`);
    await steps[step](message, details);
  },
  settings,
);
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    console.log("stopping");
    worker.stop();
  });
}
console.log("started");
await worker.run();
console.log("stopped");
// Not pool.end(), which would wait for handlers that ignored their signal.
process.exit(0);
