"""A message and the row it refers to are committed together, or not at all."""

import psycopg

import lonnymq


class CardDeclined(Exception):
    """The payment provider refuses the card."""


def place_order(connection: psycopg.Connection, queue: lonnymq.Queue, item: str, card: str) -> None:
    """Write the order and its message in one transaction."""
    with connection.transaction():
        connection.execute("insert into orders (item) values (%s)", [item])
        queue.enqueue("shop", {"item": item}, connection=connection)
        if card == "declined":
            raise CardDeclined(item)


def ship(connection: psycopg.Connection, message: lonnymq.Message) -> None:
    """Mark the order as shipped and complete its message in one transaction."""
    with connection.transaction():
        connection.execute("update orders set is_shipped = true where item = %s", [message.payload["item"]])
        outcome = message.complete(connection=connection)
        if outcome is not lonnymq.CompleteOutcome.COMPLETED:
            # The lease was lost, and another worker has the message: leave the order to it.
            raise psycopg.Rollback()


def main() -> None:
    with (
        lonnymq.embedded() as server,
        lonnymq.Queue(server.dsn) as queue,
        psycopg.connect(server.dsn, autocommit=True) as connection,
    ):
        queue.install()
        connection.execute("create table orders (item text, is_shipped boolean default false)")

        place_order(connection, queue, "lamp", card="good")
        try:
            place_order(connection, queue, "piano", card="declined")
        except CardDeclined as refused:
            print(f"{refused}: declined")

        for message in queue.dequeue(limit=10):
            ship(connection, message)
        orders = connection.execute("select item, is_shipped from orders").fetchall()
        print(f"orders: {orders}, messages left: {queue.status().waiting}")
        assert orders == [("lamp", True)]
        assert queue.status().waiting == 0


if __name__ == "__main__":
    main()
