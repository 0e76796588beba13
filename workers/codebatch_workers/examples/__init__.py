"""Tasks to copy into a project and to change; workers/TASKS.md "Custom tasks" says how they are called."""
