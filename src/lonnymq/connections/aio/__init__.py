"""Connections for asyncio."""
