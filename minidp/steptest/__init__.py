"""Tests of other people's private steps, from outside: `minidp.audit.check_step`."""
