"""Tests of real hosts here meet noise as those of tests/live do; their files ask for `watched`."""

from tests.support.machine_noise import pytest_pyfunc_call, watched

__all__ = ["pytest_pyfunc_call", "watched"]
