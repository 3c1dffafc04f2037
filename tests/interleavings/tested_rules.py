"""Rules that are not about the order of statements, as changes of the queue that take them away.

Each has the test that notices it, the changes by function, and a statement that changes a table.
"""

from tests.interleavings.rules import Change

TESTED_RULES: dict[str, tuple[str, dict[str, list[Change]], str]] = {
    "replies-are-not-bounded": (
        "tests/races/test_rule_02_stopped_clients.py::"
        "test_a_stopped_client_with_large_payloads_over_a_unix_socket",
        {"message_dequeue": [("v_content_bytes bigint := 33000;", "v_content_bytes bigint := 33000000;")]},
        "",
    ),
    "wakes-of-one-channel-fill-the-window": (
        "tests/races/test_rule_03_head_of_line.py::test_wakes_of_a_locked_channel_do_not_hide_other_channels",
        {
            "message_dequeue": [("      v_window := v_window * 2;\n", "")],
            "turn_lock_woken": [
                ("for v_try in 1..6 loop", "for v_try in 1..1 loop"),
                ("    pass.next_id := v_last_wake_id + 1;\n", "    null;\n"),
            ],
        },
        "",
    ),
    "turns-from-before-a-clock-step-stay-in-the-future": (
        "tests/races/test_rule_09_clock.py::test_due_channels_are_served_after_the_clock_stepped_back",
        {"clock_step_fix": [("where next_at > p_now and last_at", "where false and last_at")]},
        "",
    ),
    "a-table-has-no-replica-identity": (
        "tests/races/test_rule_11_publications.py::test_every_call_works_with_a_publication_for_all_tables",
        {},
        "alter table wake replica identity nothing",
    ),
    "keys-are-not-sorted": (
        "tests/races/test_rule_13_keys.py::"
        "test_two_calls_with_the_same_keys_in_opposite_order_do_not_deadlock",
        {
            "message_create_many": [
                ("order by u.key is null, u.channel_id, u.key, u.ordinal", "order by u.ordinal")
            ]
        },
        "",
    ),
    "group-check-waits": (
        "tests/sql/test_groups.py::test_a_check_does_not_wait_for_another_one",
        {"group_check": [("for update skip locked", "for update")]},
        "",
    ),
    "locked-groups-are-not-busy": (
        "tests/sql/test_groups.py::test_a_check_does_not_wait_for_another_one",
        {"group_check": [("else 'busy'", "else 'waiting'")]},
        "",
    ),
    "groups-are-not-swept": (
        "tests/sql/test_groups.py::test_a_sweep_finds_groups_that_nobody_has_checked",
        {"group_sweep": [("    perform group_release(v_locked);\n", "")]},
        "",
    ),
    "settle-calls-a-volatile-function": (
        "tests/races/test_rule_09_clock.py::test_settle_calls_no_volatile_function_before_it_writes_the_turn",
        {"message_wait": [("language sql immutable", "language sql volatile")]},
        "",
    ),
    "wrong-counts-are-not-reported": (
        "tests/races/test_rule_15_queue_check.py::test_every_kind_of_damage_is_reported_and_repaired",
        {"queue_check": [("h.in_flight <> h.capped + h.done", "false")]},
        "",
    ),
}
