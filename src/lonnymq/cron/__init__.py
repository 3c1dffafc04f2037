"""Cron expressions: when they tick in their time zone, and which ticks of a cron are due."""
