// pg-boss: batches, NOTIFY, and no pause while batches are full.

import { handle, order, require, send, waitForGo } from "./kit.mjs";

const { PgBoss } = require("pg-boss");

const BATCH = 500;
const WORKERS = 2;
// Of a tenant at a time: more, and a large tenant has had hundreds before the small ones are done.
const SHARE = 200;
const QUEUE = "messages";
const tenants = Object.keys(order.tenants);
// A queue per tenant is faster here than a group per tenant, and fairer.
const isTenanted = tenants.length > 1;
const queueOf = (tenant) => (isTenanted ? tenant : QUEUE);
const caps = Object.values(order.tenants).map((policy) => policy.max_concurrency).filter((cap) => cap !== null);
// One job of a singleton's key is active at a time, so a cap of three is three keys. A group's limit is only looked
// at: processes that fetch at the same time pass it together.
let turn = 0;
const policy = caps.length > 0 ? { policy: "singleton" } : {};
const keyed = (tenant) => (caps.length > 0 ? { singletonKey: `${tenant}/${turn++ % caps[0]}` } : {});
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
  const options = { notify: true, ...heartbeat, ...policy };
  for (const name of new Set(tenants.map(queueOf))) await boss.createQueue(name, options);
} else if (order.do === "enqueue") {
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
  // A batch of what may run is full, so that there is no pause.
  const [cap] = caps;
  const batchSize = cap ?? (isTenanted ? SHARE : (order.batch ?? BATCH));
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
