"""Channels in the admin. Each page has a bounded cost, unlike queries of the view with all channels."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.template.response import TemplateResponse

from lonnymq.django.configuration import get_queue, read_configuration
from lonnymq.django.models import Channel
from lonnymq.errors import InvalidArgument
from lonnymq.model import ChannelStatus

PAGE = 100


@admin.register(Channel)
class ChannelAdmin(admin.ModelAdmin):
    """Lists channels by name, and says why one waits; changes nothing."""

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: Any) -> Any:
        """Find nothing: Django's other pages would query the view."""
        return super().get_queryset(request).none()

    def changelist_view(self, request: Any, extra_context: Any = None) -> TemplateResponse:
        """Show a page of channels."""
        prefix, after = (request.GET.get(name, "") for name in ("prefix", "after"))
        error, channels = None, []
        self._require_view(request)
        try:
            channels = _channels(prefix, after, PAGE + 1)
        except InvalidArgument as problem:
            error = str(problem)
        more = len(channels) > PAGE
        context = {
            "title": "Channels",
            "channels": channels[:PAGE],
            "next": channels[PAGE - 1].channel if more else None,
            "prefix": prefix,
            "error": error,
        }
        return self._page(request, "channels", context)

    def change_view(
        self, request: Any, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> TemplateResponse:
        """Show one channel, and why its next message waits."""
        self._require_view(request)
        name = unquote(object_id)
        connection = read_configuration().connection
        try:
            found = _channels(name, "", 1)
            explanation = get_queue().channel(name).explain(connection=connection)
        except InvalidArgument as error:
            raise Http404(str(error)) from error
        if not found or found[0].channel != name:
            raise Http404(f"there is no channel {name!r}")
        facts = [
            *(
                (field, value)
                for field, value in vars(found[0]).items()
                if field not in ("channel", "policy")
            ),
            *vars(found[0].policy).items(),
        ]
        return self._page(request, "channel", {"title": name, "explanation": explanation, "facts": facts})

    def _require_view(self, request: Any) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _page(self, request: Any, template: str, context: dict[str, Any]) -> TemplateResponse:
        everything = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, f"lonnymq/admin/{template}.html", everything)


def _channels(prefix: str, after: str, limit: int) -> list[ChannelStatus]:
    connection = read_configuration().connection
    return get_queue().channels(prefix=prefix, after=after, limit=limit, connection=connection)
