"""Views that save something and enqueue, for the tests of ``ATOMIC_REQUESTS``."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path

from backwave_django.conf import configuration
from tests.testapp.jobs import nothing
from tests.testapp.models import Effect


def _place_order() -> None:
    Effect.objects.using(configuration().database).create(key="order")
    nothing.enqueue()


def succeeds(request: HttpRequest) -> HttpResponse:
    """Place an order."""
    _place_order()
    return HttpResponse("placed")


def fails(request: HttpRequest) -> HttpResponse:
    """Place an order, and find out too late that it cannot be."""
    _place_order()
    raise RuntimeError("no such card")


def answers_500(request: HttpRequest) -> HttpResponse:
    """Place an order, and answer an error without raising one."""
    _place_order()
    return HttpResponse("sorry", status=500)


def _non_atomic(request: HttpRequest) -> HttpResponse:
    return fails(request)


urlpatterns = [
    path("succeeds", succeeds),
    path("fails", fails),
    path("answers-500", answers_500),
    path("not-atomic/default", transaction.non_atomic_requests(using="default")(_non_atomic)),
    path("not-atomic/postgres", transaction.non_atomic_requests(using="postgres")(_non_atomic)),
]
