"""The pages of the dashboard: one module each, and a template of the same name."""
