"""Parse, call, render; no reasoning here."""
