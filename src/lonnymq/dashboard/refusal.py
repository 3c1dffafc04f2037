"""What a page answers if it cannot do what was asked."""

from psycopg.errors import QueryCanceled

from lonnymq import errors


class Refused(Exception):
    """A request that is answered with an error page: a status, a title, and what to do."""

    def __init__(self, status: int, title: str, advice: str) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.advice = advice


def refusal_of(error: Exception) -> Refused | None:
    """Return what to say about an error of the queue; None if it is a bug."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, errors.InvalidArgument):
        return Refused(400, "This value is not valid", f"{error}")
    if isinstance(error, errors.NotPermitted):
        return Refused(403, "The database role may not do this", f"{error}")
    if isinstance(error, errors.Busy):
        return Refused(
            409, "Another transaction is changing the same thing", "Nothing was changed. Try again."
        )
    if isinstance(error, errors.ConnectionLost):
        advice = "The database does not answer. The dashboard connects again when you reload the page."
        if error.may_have_happened:
            advice += " Whether the last action took effect is not known: look before you repeat it."
        return Refused(503, "No connection to the database", advice)
    if isinstance(error, errors.LonnyError):
        return Refused(503, "The queue cannot be used", f"{error}")
    if isinstance(error, QueryCanceled):
        return Refused(
            503, "The database took too long", "The statement was cancelled. Nothing was changed: try again."
        )
    if isinstance(error, TimeoutError):
        return Refused(
            503, "The database took too long", "The dashboard does not wait any longer. Try again."
        )
    return None
