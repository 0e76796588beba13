"""Tasks to copy into a project and to change; SPEC.md "Own tasks" says how they are called."""
