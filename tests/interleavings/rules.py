"""The rules of the queue, as changes of its functions that take them away: by name, for `mutants`.

Each has the scenarios that notice it, the changes by function (a text and what replaces it), and a reason if
it cannot be noticed.
"""

Change = tuple[str, str]
SKIP = "for update skip locked"
SKIP_DUE = f"        {SKIP}\n      ) s;\n      v_hints.min_next_at"
SKIP_RETURNING = f"limit (v_left + 1) / 2 {SKIP}"
SKIP_WATCHED = f"limit c_limit\n        {SKIP}\n"
NOTIFY = "  perform sleepers_notify();\n"
READ_POLICY = "select * into v_channel from channel c where c.id = v_turn.channel_id;\n"
READ_CAPPED_AGAIN = (
    "      select array_agg(l.channel_id) filter (where l.is_capped) into v_capped"
    " from lease l where l.ctid = any(v_leases);\n"
)
WAITING_IN_THE_SNAPSHOT_OF_THE_LOCK = """,
    set_config('mutant.waiting',
      (select sum(w.waiting)::text from wake w where w.channel_id = any(v_channel_ids)), false)
  into turns, min_next_at"""

RULES: dict[str, tuple[str, dict[str, list[Change]], str]] = {
    # Dequeue finds and locks turns.
    "dequeue-waits-for-due-turns": (
        "dequeue+dequeue,due",
        {"message_dequeue": [(SKIP_DUE, SKIP_DUE.replace(" skip locked", ""))]},
        "",
    ),
    "dequeue-waits-for-woken-turns": (
        "dequeue+dequeue,plain",
        {"turn_lock_woken": [(SKIP, "for update")]},
        "",
    ),
    "due-turns-are-not-locked": (
        "dequeue+dequeue,due",
        {"message_dequeue": [(SKIP_DUE, SKIP_DUE.replace(SKIP, ""))]},
        "",
    ),
    "dequeue-waits-for-returning-turns": (
        "dequeue+dequeue,returning",
        {"message_dequeue": [(SKIP_RETURNING, "limit (v_left + 1) / 2 for update")]},
        "",
    ),
    "returning-turns-are-not-locked": (
        "dequeue+dequeue,returning",
        {"message_dequeue": [(SKIP_RETURNING, "limit (v_left + 1) / 2")]},
        "",
    ),
    "woken-turns-are-not-locked": (
        "dequeue+dequeue,plain",
        {"turn_lock_woken": [(SKIP, "")]},
        "",
    ),
    "oldest-version-of-a-turn": (
        "dequeue+dequeue,plain",
        {"turn_lock_woken": [("order by t.version desc limit 1", "order by t.version limit 1")]},
        "There is one live version, and locking by ctid skips the dead ones: the order only saves time.",
    ),
    "settle-counts-in-the-snapshot-of-the-lock": (
        "create+dequeue,alone",
        {
            "turn_lock_woken": [(" into turns, min_next_at", WAITING_IN_THE_SNAPSHOT_OF_THE_LOCK)],
            "turn_allocate": [
                (
                    "v_turn.waiting + v_wakes.waiting,",
                    "v_turn.waiting + coalesce("
                    "nullif(current_setting('mutant.waiting', true), '')::bigint, v_wakes.waiting),",
                ),
                (
                    "  return v_allocation;",
                    "  perform set_config('mutant.waiting', '', false);\n  return v_allocation;",
                ),
            ],
        },
        "",
    ),
    "locked-turns-are-not-busy": (
        "dequeue+dequeue,new-waiting dequeue+dequeue,plain",
        {
            "turn_lock_woken": [
                (
                    "is_busy := coalesce(cardinality(turns), 0) < cardinality(v_channel_ids);",
                    "is_busy := false;",
                )
            ]
        },
        "",
    ),
    "due-turns-are-not-busy": (
        "dequeue+dequeue,due",
        {
            "message_dequeue": [("v_is_busy or v_first_next_at is not null", "v_is_busy")],
            "queue_next_due": [("is_busy := exists (", "is_busy := false and exists (")],
        },
        "",
    ),
    "hints-are-believed-for-long": (
        "dequeue+dequeue-twice,new-waiting,expensive",
        {
            "dequeue_retry_after": [
                ("least(p_next_scan_at, p_hints.full_scan_at + 2 * p_hints.full_scan_us, (", "least(null, (")
            ]
        },
        "",
    ),
    # Settle folds wakes.
    "settle-deletes-all-wakes": (
        "create+dequeue,alone",
        {"turn_allocate": [("w.ctid = any(v_wakes.wakes)", "w.channel_id = v_turn.channel_id")]},
        "",
    ),
    "settle-deletes-all-wakes-of-many-turns": (
        "create+dequeue_many,plain",
        {"message_settle": [("w.ctid = any(v_wakes)", "w.channel_id = any(v_settlement.channel_ids)")]},
        "",
    ),
    "settle-folds-above-the-last-wake": (
        "create+create+dequeue_many,alone",
        {
            "turn_allocate": [
                ("and w.id >= least(v_turn.wake_id - 64, p_wake_id)", "and w.id > v_turn.wake_id"),
                (
                    "wake_total(v_turn, least(v_turn.wake_id - 64, p_wake_id)",
                    "wake_total(v_turn, v_turn.wake_id + 1",
                ),
            ],
            "turn_read": [("least(t.wake_id - 64, p_wake_id)", "t.wake_id + 1")],
        },
        "",
    ),
    "settle-ignores-ended-leases": (
        "dequeue+complete,capped dequeue+complete,full",
        {"turn_assess": [("\n    p_turn.in_flight - p_wakes.done,", "\n    p_turn.in_flight,")]},
        "",
    ),
    "settle-ignores-late-messages": (
        "create+create+dequeue_many,alone create+work,plain",
        {
            "turn_assess": [
                ("then least(p_turn.late_at, p_wakes.from_at) else", "then p_turn.late_at else"),
                ("then least(p_turn.late_id, p_wakes.from_id - 1) else", "then p_turn.late_id else"),
            ]
        },
        "",
    ),
    "settle-reads-the-policy-before-the-wakes": (
        "pause+dequeue,plain resume+dequeue,paused",
        {
            "turn_allocate": [
                (f"  {READ_POLICY}", ""),
                ("  -- If the caller has found none,", f"  {READ_POLICY}  -- If the caller has found none,"),
            ]
        },
        "",
    ),
    "settle-ignores-leases-without-a-cap": (
        "channel_set-1+dequeue+dequeue,alone",
        {"turn_allocate": [("v_uncapped := lease_count_uncapped(v_turn.channel_id);", "null;")]},
        "",
    ),
    # A message is cancelled while it is being leased (rule 7).
    "cancelled-is-not-refunded": (
        "dequeue_many+cancel,capped",
        {"message_dequeue": [("if v_count < cardinality(v_settlement.messages) then", "if false then")]},
        "",
    ),
    "refund-leaves-the-turn-parked": (
        "dequeue_many+cancel,capped dequeue+cancel,full",
        {"turn_refund": [("    next_at = p_settlement.settled_at,\n", "")]},
        "",
    ),
    "place-without-id": (
        "dequeue_many+cancel,plain dequeue_many+defer,plain",
        {"message_dequeue": [(" and m.id is not distinct from u.id", "")]},
        "Vacuum does not free a row's place while the call that has read it has an older snapshot.",
    ),
    "cancel-does-not-lock": (
        "complete+cancel_leased,capped cancel+cancel,plain",
        {"message_cancel": [(SKIP, "")]},
        "",
    ),
    "cancel-waits": (
        "complete+cancel_leased,capped",
        {"message_cancel": [(SKIP, "for update")]},
        "",
    ),
    "cancel-does-not-count": (
        "dequeue+cancel,plain",
        {"message_cancel": [("-count(*) from gone g", "0 from gone g")]},
        "",
    ),
    # A scheduled message is made due while it is being leased.
    "run-now-announces-nothing": (
        "run_now+dequeue_many,alone",
        {"message_run_now": [("from moved m group by", "from moved m where false group by")]},
        "",
    ),
    "run-now-waits": (
        "run_now+cancel_last,alone",
        {"message_run_now": [(SKIP, "for update")]},
        "",
    ),
    # First use of a channel (rule 8), and its end.
    "turn-is-inserted-without-a-lock": (
        "dequeue+dequeue,new-waiting",
        {"turn_insert": [("    where creation_lock('turn', n.id)\n", "")]},
        "",
    ),
    "turn-is-inserted-without-a-second-look": (
        "create+dequeue+dequeue,new-waiting",
        {
            "turn_insert": [
                (
                    "where (select true from turn t where t.channel_id = c limit 1) is null\n      --",
                    "where true\n--",
                )
            ]
        },
        "",
    ),
    "turn-is-inserted-for-a-deleted-channel": (
        "channel_delete+create+dequeue,empty dequeue+channel_delete,empty",
        {"turn_insert": [("\n      and (select true from wake w where w.channel_id = c limit 1)", "")]},
        "",
    ),
    "channel-is-inserted-without-a-lock": (
        "dequeue+channel_set,new-waiting",
        {"channel_insert": [(" and creation_lock('channel', c)", "")]},
        "",
    ),
    "channel-is-inserted-without-a-second-look": (
        "dequeue+channel_set,new-waiting",
        {
            "channel_insert": [
                ("\n    and (select true from channel c where c.id = w.channel_id) is null", ""),
                ("\n  on conflict do nothing", ""),
            ]
        },
        "",
    ),
    "channel-name-is-not-kept": (
        "dequeue+channel_set,new-waiting",
        {
            "turn_allocate": [("perform channel_keep_name(", "perform channel_insert(")],
            "message_settle": [("perform channel_keep_name(", "perform channel_insert(")],
        },
        "",
    ),
    "channel-set-without-a-second-look": (
        "dequeue+channel_set,new-waiting channel_set+channel_set,new",
        {
            "channel_set": [
                (
                    "if not exists (select from channel c where c.id = v_id) then\n      insert",
                    "if true then\n      insert",
                )
            ]
        },
        "",
    ),
    "channel-set-leaves-no-wake": (
        "resume+dequeue,paused",
        {"channel_set": [("  insert into wake (channel_id, channel_name) values (v_id, p_channel);\n", "")]},
        "",
    ),
    "channel-delete-does-not-lock-the-turn": (
        "dequeue+channel_delete,empty channel_delete+create+dequeue,empty",
        {"channel_delete": [(f"where t.ctid = v_turn {SKIP}", "where t.ctid = v_turn")]},
        "",
    ),
    "channel-delete-ignores-messages": (
        "complete+channel_delete,empty",
        {
            "channel_delete": [
                ("where not exists (select from message m where m.channel_id = v_id)\n      and", "where")
            ]
        },
        "",
    ),
    "channel-delete-ignores-leases": (
        "cancel_leased+channel_delete,empty complete+channel_delete,empty",
        {"channel_delete": [("\n      and channel_waiting(v_id) = 0", "")]},
        "",
    ),
    # Acknowledgements (rules 4 and 6).
    "complete-does-not-compare-counts": (
        "complete+cancel_leased,capped complete+defer,capped",
        {"message_complete": [("if least(v_ended, v_removed) <>", "if false and 0 <>")]},
        "",
    ),
    "complete-reports-what-it-has-not-locked": (
        "complete+cancel_leased,capped complete+complete,capped",
        {"message_complete": [(READ_CAPPED_AGAIN, "")]},
        "",
    ),
    "complete-waits": (
        "complete+heartbeat,capped",
        {"message_complete": [("'2ms'", "'0'")]},
        "",
    ),
    "leases-are-not-locked": (
        "defer+give_back,capped complete+defer,capped",
        {"lease_lock": [(f"l.token = u.token {SKIP}", "l.token = u.token")]},
        "",
    ),
    "messages-are-not-locked": (
        "defer+cancel_leased,capped give_back+cancel_leased,capped",
        {"lease_lock": [(f"where m.id = u.id {SKIP}", "where m.id = u.id")]},
        "",
    ),
    "tokens-are-not-compared": (
        "expire+defer,plain expire+complete,plain",
        {
            "lease_lock": [("l.message_id = u.id and l.token = u.token for", "l.message_id = u.id for")],
            "message_complete": [(" and l.token = u.token offset 0", " offset 0")],
        },
        "",
    ),
    "locked-leases-are-lost": (
        "complete+heartbeat,capped defer+heartbeat,capped",
        {"lease_lock": [("else 'busy'", "else 'lease_lost'")]},
        "",
    ),
    "returned-messages-tell-no-place": (
        "dequeue+give_back,plain",
        {"lease_end": [("0, 1, m.id, m.dequeue_at from", "0, 1, null, null from")]},
        "",
    ),
    "ended-leases-are-not-reported": (
        "dequeue+defer,capped",
        {"lease_end": [("1 as done", "0 as done")]},
        "",
    ),
    "completed-leases-are-not-reported": (
        "dequeue+complete,capped",
        {
            "message_complete": [
                ("(channel_id, done) select u.id, count(*) from", "(channel_id, done) select u.id, 0 from")
            ]
        },
        "",
    ),
    # Leases expire.
    "expiry-does-not-lock": (
        "expire+complete,plain expire+defer,plain",
        {"lease_expire": [("limit 200 for update of l, m skip locked", "limit 200")]},
        "",
    ),
    "expiry-does-not-lock-messages": (
        "expire+cancel_leased,capped",
        {"lease_expire": [("for update of l, m skip locked", "for update of l skip locked")]},
        "",
    ),
    "expiry-waits": (
        "expire+defer,plain",
        {"lease_expire": [("for update of l, m skip locked", "for update of l, m")]},
        "",
    ),
    "leases-of-cancelled-messages-are-not-locked": (
        "expire+cancel_leased+complete,capped",
        {"lease_end_cancelled": [(SKIP, "")]},
        "",
    ),
    # The leases of a worker that is gone end early.
    "watch-waits": (
        "complete+watch,plain heartbeat+watch,plain",
        {"worker_watch": [(SKIP_WATCHED, SKIP_WATCHED.replace(" skip locked", ""))]},
        "",
    ),
    # Sleepers (rule 5).
    "sleep-before-the-horizon-has-passed": ("create+sleep-at-once,empty", {}, ""),
    "create-does-not-notify": ("create+sleep,empty", {"message_create": [(NOTIFY, "")]}, ""),
    "create-many-does-not-notify": ("create_many+sleep,empty", {"message_create_many": [(NOTIFY, "")]}, ""),
    "create-notifies-before-it-inserts": (
        "create+sleep,empty",
        {
            "message_create": [
                (NOTIFY, ""),
                ("  if p_key is null then\n    insert", f"{NOTIFY}  if p_key is null then\n    insert"),
            ]
        },
        "",
    ),
    "publish-does-not-notify": ("publish+sleep,empty", {"message_publish": [(NOTIFY, "")]}, ""),
    "complete-does-not-notify": ("complete+sleep,full", {"message_complete": [(NOTIFY, "")]}, ""),
    "returned-messages-do-not-notify": ("defer+sleep,empty", {"lease_end": [(NOTIFY, "")]}, ""),
    "redrive-does-not-notify": ("redrive+sleep,empty", {"dead_redrive": [(NOTIFY, "")]}, ""),
    "channel-set-does-not-notify": ("resume+sleep,paused", {"channel_set": [(NOTIFY, "")]}, ""),
    # Results, history, and repairs.
    "results-are-kept-of-lost-attempts": (
        "complete_result+cancel_result,plain expire+complete_result,plain",
        {"message_complete": [("case when v_outcomes[u.ordinal] is null then u.id end", "u.id")]},
        "",
    ),
    "history-is-locked-against-writers": (
        "complete+history_prepare,plain",
        {"history_prepare": [("in share update exclusive mode", "in share row exclusive mode")]},
        "",
    ),
    "history-waits-for-its-turn": (
        "history_prepare+history_if_due,plain",
        {"history_prepare_if_due": [("share update exclusive mode nowait", "share update exclusive mode")]},
        "",
    ),
    "repair-does-not-lock-turns": (
        "dequeue+repair,plain dequeue+repair,capped",
        {
            "queue_check": [
                ("(select t.ctid from turn t for update skip locked)", "(select t.ctid from turn t)")
            ]
        },
        "",
    ),
    # The default policy.
    "default-policy-is-not-announced": (
        "default-raised+dequeue_many,default-capped",
        {
            "dequeue_start_full_scan": [
                ("has_more_expired := policy_announce(p_now) or has_more_expired;", "null;")
            ],
            "queue_check": [("exists (select from policy_change) as is_announced", "false as is_announced")],
        },
        "",
    ),
    "default-policy-leaves-no-announcement": (
        "default-raised+dequeue_many,default-capped",
        # Still a sign that there is a default policy: otherwise no dequeue would read it.
        {
            "queue_set": [
                (
                    "    insert into policy_change default values;\n",
                    "    perform nextval('policy_change_id_seq');\n",
                )
            ]
        },
        "",
    ),
    "default-policy-is-announced-once": (
        "default-2+dequeue+dequeue,default-new",
        {"policy_announce": [("where id = v_id and horizon is not null;", "where id = v_id;")]},
        "",
    ),
    "announcement-ignores-locked-turns": (
        "default-2+dequeue,default-capped default-2+dequeue+dequeue,default-capped",
        {"policy_announce": [("t.xmax not in ('0', t.xmin) or ", "")]},
        "The second pass finds such a turn when the transaction has ended; this only finds it sooner.",
    ),
    "default-policy-does-not-notify": (
        "default-raised+sleep,default-capped",
        {"queue_set": [("    perform sleepers_notify();\n", "")]},
        "",
    ),
    # Tenants.
    "tenants-do-not-wait-for-room": (
        "tenant_create+tenant_create,sized",
        {
            "tenant_enter": [
                (
                    'where u.name = p_channel collate "C" and not u.is_prefix for update;',
                    'where u.name = p_channel collate "C" and not u.is_prefix;',
                )
            ]
        },
        "",
    ),
    # Crons, loads and claims.
    "ticks-are-decided-twice": (
        "cron_tick+cron_tick,plain",
        {"cron_tick": [("v_cron.mark_at <> p_mark_at or", "")]},
        "",
    ),
    "crons-are-not-locked": ("cron_tick+cron_tick,plain", {"cron_tick": [(SKIP, "")]}, ""),
    "dead-letters-are-not-locked": ("redrive+redrive,plain", {"dead_redrive": [(SKIP, "")]}, ""),
    "dead-letters-are-not-locked-by-a-purge": (
        "redrive+purge,plain purge+purge,plain",
        {"dead_purge": [(SKIP, "")]},
        "",
    ),
    "batches-of-a-stream-are-published-together": (
        "stream_publish+stream_publish,plain",
        {"stream_publish": [("and s.name = p_stream for update;", "and s.name = p_stream;")]},
        "",
    ),
    "claims-are-completed-together": (
        "claim_complete+claim_complete,plain",
        {"claim_complete": [("and not c.is_done for update;", "and not c.is_done;")]},
        "",
    ),
    "loads-are-published-twice": (
        "publish+publish,plain",
        {
            "message_publish": [
                ("on conflict do nothing;\n  if not found then", "on conflict do nothing;\n  if false then")
            ]
        },
        "",
    ),
}
