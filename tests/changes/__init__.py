"""Tests of changes that tasks propose: checks, writes, crashes, races and patches."""
