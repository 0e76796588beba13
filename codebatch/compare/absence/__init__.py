"""Reasons why a finding of one batch is absent from the other batch."""
