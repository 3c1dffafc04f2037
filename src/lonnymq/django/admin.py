"""Dead letters and channels in the admin."""

from collections import Counter
from typing import Any

from django.contrib import admin, messages

# Django imports only modules of this name.
from lonnymq.django.channel_admin import ChannelAdmin as ChannelAdmin
from lonnymq.django.configuration import get_queue, read_configuration
from lonnymq.django.models import DeadLetter
from lonnymq.model import RedriveOutcome

MAX_LINE = 120


@admin.register(DeadLetter)
class DeadLetterAdmin(admin.ModelAdmin):
    """Shows dead letters, puts them back into their channels, and deletes them."""

    list_display = ("message_id", "channel", "key", "attempts", "buried_at", "last_line")
    search_fields = ("channel__exact", "key__exact")
    search_help_text = "A channel or a key, in full"
    ordering = ("-message_id",)
    show_full_result_count = False
    actions = ("redrive",)

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_redrive_permission(self, request: Any) -> bool:
        """Whether the user may put dead letters back."""
        return bool(request.user.has_perm("lonnymq.redrive_deadletter"))

    @admin.display(description="error")
    def last_line(self, letter: DeadLetter) -> str:
        """Return the end of the error, which names the exception."""
        return (letter.error or "").strip().rpartition("\n")[2][:MAX_LINE]

    @admin.action(description="Put selected dead letters back into their channels", permissions=["redrive"])
    def redrive(self, request: Any, queryset: Any) -> None:
        """Redrive the selected ones, and say what has become of them."""
        ids = list(queryset.values_list("pk", flat=True))
        outcomes = Counter(get_queue().dead().redrive(ids, connection=read_configuration().connection))
        for outcome, count in outcomes.items():
            level = messages.SUCCESS if outcome is RedriveOutcome.REDRIVEN else messages.WARNING
            self.message_user(request, f"{outcome}: {count}", level)

    def delete_model(self, request: Any, obj: DeadLetter) -> None:
        """Purge one dead letter."""
        self._purge([obj.pk])

    def delete_queryset(self, request: Any, queryset: Any) -> None:
        """Purge dead letters, after Django's page that asks for confirmation."""
        self._purge(list(queryset.values_list("pk", flat=True)))

    def _purge(self, ids: list[int]) -> None:
        get_queue().dead().purge(ids, connection=read_configuration().connection)
