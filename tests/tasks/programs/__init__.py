"""Tests of tasks that call a program, without processes."""
