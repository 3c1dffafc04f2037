"""No models. Without this module, Django would not tell the application that migrations have run."""
