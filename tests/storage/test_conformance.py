"""The conformance suite on every store; the tests themselves are shipped with the package."""

from __future__ import annotations

from backwave_django.testing.conformance import conformance_tests

globals().update(conformance_tests())
