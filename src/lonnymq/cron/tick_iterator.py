"""Adapts cronsim, which evaluates cron expressions, to clock changes of less than an hour.

On Lord Howe Island, clocks change by half an hour. cronsim advances by whole hours, so it would skip the
first half of the next hour.
"""

from datetime import UTC, timedelta

from cronsim import CronSim


class TickIterator(CronSim):
    """Yields the local times of ticks, from an instant forwards or backwards."""

    def advance_hour(self) -> bool:
        """Go to the next matching hour, or to the next day."""
        if self.dt.hour in self.hours:
            return False
        self.dt = self.dt.replace(minute=0, second=0)
        while self.dt.hour not in self.hours:
            self.tick(seconds=3600)
            self._return_to_the_full_hour()
            if self.dt.hour == 0:
                break
        return True

    def advance_minute(self) -> bool:
        """Go to the next matching minute, or the next hour; after a clock change, minute by minute."""
        before = self.dt
        has_moved = super().advance_minute()
        if has_moved and before.utcoffset() != self.dt.utcoffset():
            self.dt = before.replace(second=0)
            while True:
                self.tick(seconds=60)
                if self.dt.minute in self.minutes or self.dt.minute == 0:
                    break
        return has_moved

    def _return_to_the_full_hour(self) -> None:
        if self.dt.minute and self.dt.tzinfo is not None:
            begin = (self.dt.astimezone(UTC) - timedelta(minutes=self.dt.minute)).astimezone(self.dt.tzinfo)
            if begin.hour == self.dt.hour:
                self.dt = begin
