"""Cron expressions: when they tick in their time zone, and which of a cron's ticks are due."""
