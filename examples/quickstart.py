"""Enqueue, dequeue and complete one message, on a private PostgreSQL."""

import lonnymq


def main() -> None:
    with lonnymq.embedded() as server, lonnymq.Queue(server.dsn) as queue:
        queue.install()
        queue.enqueue("acme", {"video": 7})

        [message] = queue.dequeue()
        print(f"{message.channel}: {message.payload}, attempt {message.attempt}")
        assert message.payload == {"video": 7}

        outcome = message.complete()
        print(f"the message is {outcome}")
        assert outcome is lonnymq.CompleteOutcome.COMPLETED
        assert len(queue.dequeue()) == 0


if __name__ == "__main__":
    main()
