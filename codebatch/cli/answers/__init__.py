"""Answers of commands: their JSON types and their text."""
