"""Reasons why a finding is absent from the other batch."""
