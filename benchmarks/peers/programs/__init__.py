"""The programs that run in the peers' environments, and the kits they share."""
