"""Overview: is the queue healthy, and why; figures, and the channels to look at first."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from starlette.responses import Response

from lonnymq.charts.draw import format_count
from lonnymq.dashboard.history import History
from lonnymq.dashboard.sampler import Sample
from lonnymq.dashboard.view import View
from lonnymq.formatting import duration, quantity
from lonnymq.model import ChannelStatus

WARN_LAG_S, BAD_LAG_S = 10.0, 60.0
# A dequeue ends expired leases every few seconds.
EXPIRED_S = 30.0
LONG_TRANSACTION_S = 3600.0


@dataclass(frozen=True)
class Verdict:
    """Whether the queue is healthy, in a few words, why, and what to do."""

    level: Literal["good", "warn", "bad"]
    title: str
    reason: str
    # A channel that the reason is about.
    channel: str | None = None


async def show(view: View) -> Response:
    sampler = view.dashboard.sampler
    sample = await sampler.look()
    return view.render(
        "overview.html",
        sample=sample,
        pulse=sample.pulse,
        rates=sampler.rates,
        age_s=sampler.age_s,
        history=sampler.history,
        verdict=judge(sample),
        starved=sample.overdue[0] if sample.overdue else None,
        noisiest=_noisiest(sample, sampler.history),
    )


def _noisiest(sample: Sample, history: History) -> ChannelStatus | None:
    """Return the channel that was served most in the last minute; if none was, that with most messages."""
    return max(
        sample.busiest,
        key=lambda one: (history.share(one.channel) or 0.0, one.waiting + one.leased),
        default=None,
    )


def judge(sample: Sample) -> Verdict:
    """Say what matters most about a queue."""
    pulse = sample.pulse
    first = sample.overdue[0].channel if sample.overdue else None
    more = "" if pulse.is_due_complete else " or more"
    demand = "1 message" if pulse.demand == 1 and not more else f"{format_count(pulse.demand)}{more} messages"
    if pulse.first_expiry_at is not None and pulse.at - pulse.first_expiry_at > timedelta(seconds=EXPIRED_S):
        return Verdict(
            "bad",
            "No worker is taking over",
            f"{quantity(pulse.expired, 'lease')} expired, the first one"
            f" {duration((pulse.at - pulse.first_expiry_at).total_seconds())} ago, and no worker has"
            " dequeued since: start workers. Nothing is lost.",
        )
    if pulse.turn_lag_s >= WARN_LAG_S:
        level: Literal["warn", "bad"] = "bad" if pulse.turn_lag_s >= BAD_LAG_S else "warn"
        waits = f"A channel has been ready for {duration(pulse.turn_lag_s)}, and {demand} could run now"
        if pulse.leased == 0 and sample.slots.processes == 0:
            return Verdict(level, "No worker is running", f"{waits}, but none does: start workers.", first)
        busy = (
            f" {sample.slots.busy:,} of {sample.slots.slots:,} slots are busy." if sample.slots.slots else ""
        )
        advice = f"{waits}: start more workers, or look at what they do.{busy}"
        return Verdict(level, "There are too few workers", advice, first)
    if pulse.oldest_transaction_s is not None and pulse.oldest_transaction_s > LONG_TRANSACTION_S:
        return Verdict(
            "warn",
            "A transaction has been open for long",
            f"It began {duration(pulse.oldest_transaction_s)} ago. While it is open, dead rows accumulate"
            " in every table of this database.",
        )
    if pulse.history_overflow:
        return Verdict(
            "warn",
            "History has no partition for today",
            f"{quantity(pulse.history_overflow, 'attempt')} went into history_overflow: run"
            " `lonnymq history prepare`.",
        )
    if pulse.demand:
        slots = sample.slots
        busy = f", and {slots.busy:,} of {slots.slots:,} slots are busy" if slots.slots else ""
        return Verdict(
            "good",
            "No tenant waits long for its turn",
            f"The longest wait for a turn is {duration(pulse.turn_lag_s)}. {demand} could run now{busy}.",
        )
    return Verdict("good", "Nothing waits", "Every message that may run now is being processed.")
