// graphile-worker: a local queue and batched completion, as its page on performance has it.

import { handle, order, require, send, waitForGo } from "./kit.mjs";

const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const { Pool } = require("pg");

const CONCURRENCY = 24;
const LOCAL_QUEUE = 500;
const isTenanted = Object.keys(order.tenants).length > 1;
const pgPool = new Pool({ max: 10 });
const logger = new Logger(() => () => {});

// Jobs of a named queue run one at a time: that is what it has for tenants.
const named = (tenant) => (isTenanted ? { queueName: tenant } : {});

async function enqueue() {
  const utils = await makeWorkerUtils({ pgPool, logger });
  await send(
    (tenant, payload) => utils.addJob("handle", payload, named(tenant)),
    (batch) => utils.addJobs(batch.map(([tenant, payload]) => ({ identifier: "handle", payload, ...named(tenant) }))),
  );
  await utils.release();
}

async function work() {
  // With named queues a local queue would be short, and wait: each worker fetches for itself then.
  const fetching = isTenanted ? {} : { localQueue: { size: order.batch ?? LOCAL_QUEUE } };
  const worker = { concurrentJobs: CONCURRENCY, completeJobBatchDelay: 0, failJobBatchDelay: 0, ...fetching };
  waitForGo();
  const runner = await run({
    pgPool,
    logger,
    taskList: { handle },
    preset: { worker: { pollInterval: 100, ...worker } },
  });
  await runner.promise;
}

if (order.do === "install") {
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  await utils.release();
} else if (order.do === "enqueue") {
  await enqueue();
} else {
  await work();
}
await pgPool.end();
