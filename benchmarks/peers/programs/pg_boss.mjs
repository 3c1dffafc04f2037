// pg-boss: batches, NOTIFY, and no pause while batches are full.

import { handle, order, require, send, waitForGo } from "./kit.mjs";

const { PgBoss } = require("pg-boss");

const BATCH = 500;
const WORKERS = 2;
// For tenants, if nobody asks for less.
const GROUP = 10;
const QUEUE = "messages";
const isTenanted = Object.keys(order.tenants).length > 1;
const caps = Object.values(order.tenants).map((policy) => policy.max_concurrency).filter((cap) => cap !== null);
const isGrouped = isTenanted || caps.length > 0;
const grouped = (tenant) => (isGrouped ? { group: { id: tenant } } : {});
const database = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT ?? 5432),
  user: process.env.PGUSER,
  password: process.env.PGPASSWORD,
  database: process.env.PGDATABASE,
};
// 10 is the shortest that it takes.
const heartbeat = order.lease_s === null ? {} : { heartbeatSeconds: 10 };
const often = order.lease_s === null ? {} : { monitorIntervalSeconds: 1, superviseIntervalSeconds: 1 };
const isWorker = order.do === "work";

const role = { schedule: false, supervise: isWorker, useListenNotify: isWorker, migrate: !isWorker };
const boss = new PgBoss({ ...database, ...often, ...role });
boss.on("error", (error) => console.error(error));
await boss.start();

if (order.do === "install") {
  await boss.createQueue(QUEUE, { notify: true, ...heartbeat });
} else if (order.do === "enqueue") {
  await send(
    (tenant, payload) => boss.send(QUEUE, payload, grouped(tenant)),
    (batch) => boss.insert(QUEUE, batch.map(([tenant, data]) => ({ data, ...grouped(tenant) }))),
  );
} else {
  waitForGo();
  // A batch of what a group may have is full, so that there is no pause.
  const cap = caps[0] ?? GROUP;
  const fetching = isGrouped ? { batchSize: cap, groupConcurrency: cap } : { batchSize: order.batch ?? BATCH };
  const options = {
    ...fetching,
    localConcurrency: WORKERS,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
  };
  await boss.work(QUEUE, options, (jobs) => Promise.all(jobs.map((job) => handle(job.data))));
}
if (!isWorker) await boss.stop({ graceful: false });
