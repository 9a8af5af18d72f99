"""Tests of the pure Core, a file for each of its modules."""
