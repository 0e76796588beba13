"""The scheduler of a task list: which command runs next."""
