"""A failing message is retried with its saved state, then buried, then redriven."""

import lonnymq
from lonnymq import DeferOutcome, Message


def attempt(message: Message, is_fixed: bool) -> None:
    """Upload in parts; the state records how many are done."""
    state = message.state or {"parts": 0}
    if is_fixed:
        print(f"attempt {message.attempt}: finished, starting after part {state['parts']}")
        message.complete()
        return
    outcome = message.defer(
        delay=0.05 * 2**message.attempt,
        state={"parts": state["parts"] + 1},
        error=f"connection reset in part {state['parts'] + 1}",
    )
    print(f"attempt {message.attempt} of {message.max_attempts}: {outcome}")
    assert outcome is (DeferOutcome.BURIED if message.attempt == 3 else DeferOutcome.DEFERRED)


def main() -> None:
    with lonnymq.embedded() as server, lonnymq.Queue(server.dsn) as queue:
        queue.install()
        queue.enqueue("acme", {"video": 7}, max_attempts=3)
        for _ in range(3):
            [message] = queue.dequeue(wait=5)
            attempt(message, is_fixed=False)
        assert not queue.dequeue(wait=0.5), "a buried message is not delivered"

        [letter] = queue.dead("acme").list()
        print(f"dead letter {letter.id}: {letter.attempts} attempts, last error: {letter.error}")
        assert letter.error == "connection reset in part 3"

        assert queue.dead("acme").redrive_all() == 1
        [message] = queue.dequeue(wait=5)
        assert message.id == letter.id
        assert message.attempt == 1
        assert message.state == {"parts": 3}
        attempt(message, is_fixed=True)
        assert not queue.dead("acme").list()


if __name__ == "__main__":
    main()
