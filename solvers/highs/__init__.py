"""HiGHS."""
