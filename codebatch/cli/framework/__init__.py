"""Code shared by all commands: options, context, exit statuses."""
