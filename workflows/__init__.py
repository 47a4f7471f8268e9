"""Durable shells: wait, decide, apply. No policy lives here."""
