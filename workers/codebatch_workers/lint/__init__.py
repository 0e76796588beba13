"""Rules, and what finds where they are broken."""
