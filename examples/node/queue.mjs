// The functions of the queue that a producer and a worker call; each is one round trip.

import pg from "pg";

// A call that takes longer has failed: TCP cannot tell a silent connection from a slow one.
const CALL_TIMEOUT_MS = 10_000;

export class Queue {
  constructor(pool, schema = "lonnymq") {
    this.pool = pool;
    this.schema = pg.escapeIdentifier(schema);
    // Without listeners, the error of a connection that breaks between two statements ends the process. If nobody uses
    // it, the pool opens another one; in a transaction, the next statement fails.
    pool.on("error", (error) => console.error(`idle connection: ${error.message}`));
    pool.on("connect", (client) => client.on("error", () => {}));
  }

  // Create a message. With the client of a transaction, it exists if that transaction commits.
  async create(channel, payload, { client, delayMs, key, maxAttempts, headers } = {}) {
    const [created] = await this.call(
      "message_create($1, $2, p_delay_ms => $3, p_key => $4, p_max_attempts => $5, p_headers => $6)",
      [
        channel,
        Buffer.from(JSON.stringify(payload)),
        delayMs ?? null,
        key ?? null,
        maxAttempts ?? null,
        headers ? JSON.stringify(headers) : null,
      ],
      client,
    );
    return created;
  }

  // Lease up to `limit` messages. pg returns bigint as text: ids and tokens must stay texts, or they lose digits.
  async dequeue(limit, leaseMs, worker) {
    const rows = await this.call("message_dequeue($1, $2, $3, p_is_durable => false)", [limit, leaseMs, worker]);
    return { messages: rows.filter((row) => row.outcome === "leased"), ...rows[0] };
  }

  // Read what did not fit into the reply of dequeue; undefined if the lease has ended.
  async read(message) {
    const [found] = await this.call("message_read($1, $2)", [[message.message_id], [message.token]]);
    return found;
  }

  // One outcome per message, in their order.
  async heartbeat(messages, leaseMs) {
    const rows = await this.call("message_heartbeat($1, $2, $3, p_is_durable => false)", [
      messages.map((message) => message.message_id),
      messages.map((message) => message.token),
      leaseMs,
    ]);
    return rows.map((row) => row.outcome);
  }

  complete(message, client) {
    return this.#acknowledge("message_complete($1, $2)", message, [], client);
  }

  defer(message, delayMs, error) {
    const call = "message_defer($1, $2, p_delays_ms => $3, p_errors => $4)";
    return this.#acknowledge(call, message, [[delayMs], [withoutNull(error)]]);
  }

  bury(message, error) {
    return this.#acknowledge("message_bury($1, $2, $3)", message, [[withoutNull(error)]]);
  }

  giveBack(message) {
    return this.#acknowledge("message_give_back($1, $2)", message, []);
  }

  async #acknowledge(call, message, details, client) {
    const [row] = await this.call(call, [[message.message_id], [message.token], ...details], client);
    return row.outcome;
  }

  async call(call, values = [], client = this.pool) {
    const text = `select * from ${this.schema}.${call}`;
    return (await client.query({ text, values, query_timeout: CALL_TIMEOUT_MS })).rows;
  }

  // Run `work` with a client in a transaction, which is rolled back if it throws.
  async transaction(work) {
    const client = await this.pool.connect();
    let isCommitted = false;
    try {
      await client.query("begin");
      const result = await work(client);
      await client.query("commit");
      isCommitted = true;
      return result;
    } finally {
      // true: the connection is closed, which rolls back.
      client.release(!isCommitted);
    }
  }
}

// PostgreSQL stores no null character.
const withoutNull = (text) => text.replaceAll("\0", "");
