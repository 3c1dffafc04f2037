"""A systematic concurrency tester: every interleaving of two or three calls, statement by statement.

Ordinary race tests run many sessions at full speed and hope that they meet. Here, nothing is left to the
machine:

1.  `instrument` rewrites the queue's functions. Before each statement that reads or writes a shared table it
    inserts a call of `yield_at`, and another one inside statements that lock, between their snapshot and
    their first lock. `statements` splits plpgsql for it. Nothing in the product knows about this.
2.  `laboratory` installs the rewritten functions in a database of its own. A session that reaches a yield
    point reports its number, and waits for an advisory lock that the controller holds. `states` builds the
    state in which each schedule begins, and returns to it. `sessions` are the connections.
3.  `operations` and `rarer` are the calls that are examined, `scenarios` put two or three of them on a common
    state.
4.  `execution` runs one schedule of a scenario: it decides at each yield point which session goes on, or that
    one rolls back or is killed. `actors` carry the decisions out. A session that waits for another is a
    problem in itself.
5.  `account` judges what calls reply, and `ledger` what commits change: exactly what their replies said, and
    nothing that breaks the promises of `tests/properties`. `views` are what is known of each open call. At
    the end, queue_check() must report nothing, and every message must come out.
6.  `search` enumerates the schedules up to a number of preemptions and faults, or draws them at random.
7.  `mutants` take one rule of the queue away each (`rules`), and prove that the search notices. What takes
    away rules that are not about the order of statements (`tested_rules`) is noticed by other tests.

A schedule is a list of decisions, such as 0,0,1,1,0k: session 0 goes on, and again, then session 1, and
session 0 is killed. This command runs it again and prints every step:

    .venv/bin/python -m tests.interleavings --replay SCENARIO 0,0,1,1,0k

docs/explanation/interleavings.md tells the rest.
"""
