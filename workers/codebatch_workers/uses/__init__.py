"""Uses of names, resolved to definitions. The files are parsed when a query needs them."""
