// pg-boss: batches, NOTIFY, and no pause while batches are full.

import { command, handle, require, send, waitForGo } from "./kit.mjs";

const { PgBoss } = require("pg-boss");

const BATCH = 500;
const WORKERS = 2;
// Batch size per tenant; with more, a large tenant gets hundreds before the small tenants are done.
const SHARE = 200;
const QUEUE = "messages";
const tenants = Object.keys(command.tenants);
// In this benchmark a queue per tenant is faster and fairer than a group per tenant.
const isTenanted = tenants.length > 1;
const queueOf = (tenant) => (isTenanted ? tenant : QUEUE);
const caps = Object.values(command.tenants).map((policy) => policy.max_concurrency).filter((cap) => cap !== null);
// One job per singleton key is active at a time, so a cap of three is three keys. The limit of a group is checked
// without a lock, so processes that fetch at the same time exceed it.
let jobNumber = 0;
const policy = caps.length > 0 ? { policy: "singleton" } : {};
const keyed = (tenant) => (caps.length > 0 ? { singletonKey: `${tenant}/${jobNumber++ % caps[0]}` } : {});
const database = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT ?? 5432),
  user: process.env.PGUSER,
  password: process.env.PGPASSWORD,
  database: process.env.PGDATABASE,
};
// 10 is the minimum that it accepts.
const heartbeat = command.lease_s === null ? {} : { heartbeatSeconds: 10 };
const frequentChecks = command.lease_s === null ? {} : { monitorIntervalSeconds: 1, superviseIntervalSeconds: 1 };
const isWorker = command.action === "work";

const role = { schedule: false, supervise: isWorker, useListenNotify: isWorker, migrate: !isWorker };
const boss = new PgBoss({ ...database, ...frequentChecks, ...role });
boss.on("error", (error) => console.error(error));
await boss.start();

if (command.action === "install") {
  const options = { notify: true, ...heartbeat, ...policy };
  for (const name of new Set(tenants.map(queueOf))) await boss.createQueue(name, options);
} else if (command.action === "enqueue") {
  await send(
    (tenant, payload) => boss.send(queueOf(tenant), payload, keyed(tenant)),
    async (batch) => {
      const jobs = {};
      for (const [tenant, data] of batch) (jobs[queueOf(tenant)] ??= []).push({ data, ...keyed(tenant) });
      for (const name in jobs) await boss.insert(name, jobs[name]);
    },
  );
} else {
  waitForGo();
  // The batch size equals what may run, so that batches are full and there is no pause.
  const [cap] = caps;
  const batchSize = cap ?? (isTenanted ? SHARE : (command.batch ?? BATCH));
  const options = {
    batchSize,
    localConcurrency: isTenanted ? 1 : WORKERS,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
  };
  const handleAll = (jobs) => Promise.all(jobs.map((job) => handle(job.data)));
  for (const name of new Set(tenants.map(queueOf))) await boss.work(name, options, handleAll);
}
if (!isWorker) await boss.stop({ graceful: false });
