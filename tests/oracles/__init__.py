"""Our answers about real code, held against tools that others wrote."""
