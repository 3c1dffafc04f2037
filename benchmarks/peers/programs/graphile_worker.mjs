// graphile-worker: a local queue and batched completion, as its page on performance has it.

import { handle, order, require, send, waitForGo } from "./kit.mjs";

const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const { Pool } = require("pg");

const CONCURRENCY = 24;
const LOCAL_QUEUE = 500;
// Of a tenant at a time: more, and a large tenant has had hundreds before the small ones are done.
const SHARE = 40;
const TASK = "handle";
const tenants = Object.keys(order.tenants);
const isTenanted = tenants.length > 1;
const isWorker = order.do === "work";
// One more than jobs at a time, as its page has it; each runner keeps a connection of its own for LISTEN.
const pgPool = new Pool({ max: CONCURRENCY + (isWorker && isTenanted ? tenants.length : 1) });
const logger = new Logger(() => () => {});

// Jobs of a named queue run one at a time, so a cap of three is three names; for tenants alone names would be
// slow, because every search passes over all jobs of a name that is taken.
let turn = 0;
const job = (tenant, payload) => {
  const cap = order.tenants[tenant].max_concurrency;
  const named = cap === null ? {} : { queueName: `${tenant}/${turn++ % cap}` };
  return { identifier: isTenanted ? tenant : TASK, payload, ...named };
};
const isCapped = Object.values(order.tenants).some((policy) => policy.max_concurrency !== null);

async function enqueue() {
  const utils = await makeWorkerUtils({ pgPool, logger });
  await send(
    (tenant, data) => {
      const { identifier, payload, ...named } = job(tenant, data);
      return utils.addJob(identifier, payload, named);
    },
    (batch) => utils.addJobs(batch.map(([tenant, payload]) => job(tenant, payload))),
  );
  await utils.release();
}

function settings() {
  // A local queue keeps one job of each name and drops the rest: with names each worker fetches for itself.
  if (isCapped) return { concurrentJobs: 2, pollInterval: 10 };
  const batched = { completeJobBatchDelay: 0, failJobBatchDelay: 0, pollInterval: 100 };
  if (isTenanted) return { ...batched, concurrentJobs: SHARE, localQueue: { size: SHARE } };
  return { ...batched, concurrentJobs: CONCURRENCY, localQueue: { size: order.batch ?? LOCAL_QUEUE } };
}

async function work() {
  waitForGo();
  const taskLists = isTenanted ? tenants.map((tenant) => ({ [tenant]: handle })) : [{ [TASK]: handle }];
  const preset = { worker: settings() };
  const starting = taskLists.map((taskList) => run({ pgPool, logger, taskList, preset, noHandleSignals: true }));
  const runners = await Promise.all(starting);
  process.once("SIGTERM", () => runners.forEach((runner) => runner.stop()));
  await Promise.all(runners.map((runner) => runner.promise));
}

if (order.do === "install") {
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  await utils.release();
} else if (isWorker) {
  await work();
} else {
  await enqueue();
}
await pgPool.end();
