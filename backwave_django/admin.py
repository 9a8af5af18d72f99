"""A read-only look at jobs in the Django admin."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from .core.states import JobState
from .core.text import visible
from .models import Job

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    _JobAdmin = admin.ModelAdmin[Job]
else:
    _JobAdmin = admin.ModelAdmin


@admin.register(Job)
class JobAdmin(_JobAdmin):
    """Lists jobs and shows each one; nothing can be added, changed or deleted here."""

    list_display = ("wire_name", "queue", "state_label", "attempt", "due_time", "job_id")
    list_filter = ("state",)
    list_per_page = 50
    ordering = ("-sequence",)
    search_fields = ("job_id", "wire_name")  # what shows the box; the search is below
    search_help_text = _("A whole job id or a whole wire name.")
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    # The causes and details of failures are text of the application, and may hold what
    # not everybody may see: a page shows the kind of a failure, never its message.
    fields = (
        "job_id", "wire_name", "queue", "state_label", "attempt", "due_time", "enqueued_at",
        "lease_owner", "lease_expires_at", "terminal_at", "cause_kind",
    )  # fmt: skip

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """Find a whole job id or a whole wire name: what an index or a person can find."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if visible(term) != term:  # no database holds it, and some choke on being asked
            return queryset.none(), False
        matches = Q(wire_name=term)
        with suppress(ValueError):
            matches |= Q(job_id=UUID(term))
        return queryset.filter(matches), False

    @admin.display(description=_("state"), ordering="state")
    def state_label(self, job: Job) -> str:
        """Give the spelling of the state."""
        return JobState(job.state).label

    @admin.display(description=_("ended because of"))
    def cause_kind(self, job: Job) -> str:
        """Give the terminal cause up to its first colon: the type of an error, and no more."""
        return (job.terminal_cause or "").partition(":")[0]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Jobs are enqueued, not added."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A job moves by its states, never by an edit."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Jobs go by retention."""
        return False
