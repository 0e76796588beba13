"""Runs: everything that executes, resumes or imports."""
