// graphile-worker: a local queue and batched completion, as its documentation on performance advises.

import { command, handle, require, send, waitForGo } from "./kit.mjs";

const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const { Pool } = require("pg");

const CONCURRENCY = 24;
const LOCAL_QUEUE = 500;
// Concurrent jobs per tenant; with more, a large tenant gets hundreds before the small tenants are done.
const SHARE = 40;
const TASK = "handle";
const tenants = Object.keys(command.tenants);
const isTenanted = tenants.length > 1;
const isWorker = command.action === "work";
// One more than concurrent jobs, as documented; each runner keeps an additional connection for LISTEN.
const pgPool = new Pool({ max: CONCURRENCY + (isWorker && isTenanted ? tenants.length : 1) });
const logger = new Logger(() => () => {});

// Jobs of a named queue run one at a time, so a cap of three is three names. For tenants without a cap, named
// queues would be slow, because every search passes over all jobs of a locked queue.
let jobNumber = 0;
const job = (tenant, payload) => {
  const cap = command.tenants[tenant].max_concurrency;
  const named = cap === null ? {} : { queueName: `${tenant}/${jobNumber++ % cap}` };
  return { identifier: isTenanted ? tenant : TASK, payload, ...named };
};
const isCapped = Object.values(command.tenants).some((policy) => policy.max_concurrency !== null);

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
  // A local queue keeps only one job per named queue, so with named queues each worker fetches for itself.
  if (isCapped) return { concurrentJobs: 2, pollInterval: 10 };
  const batched = { completeJobBatchDelay: 0, failJobBatchDelay: 0, pollInterval: 100 };
  if (isTenanted) return { ...batched, concurrentJobs: SHARE, localQueue: { size: SHARE } };
  return { ...batched, concurrentJobs: CONCURRENCY, localQueue: { size: command.batch ?? LOCAL_QUEUE } };
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

if (command.action === "install") {
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  await utils.release();
} else if (isWorker) {
  await work();
} else {
  await enqueue();
}
await pgPool.end();
