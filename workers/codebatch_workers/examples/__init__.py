"""Tasks to copy into a project and to change; workers/TASKS.md "Own tasks" says how they are called."""
