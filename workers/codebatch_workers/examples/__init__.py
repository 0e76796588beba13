"""Example tasks to copy into a project and adapt. workers/TASKS.md "Custom tasks" describes their interface."""
