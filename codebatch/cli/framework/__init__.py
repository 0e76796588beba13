"""What all commands share: options, context, exit statuses."""
