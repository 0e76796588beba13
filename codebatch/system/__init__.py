"""Files, locks, processes, clocks, git and the machine, as the other packages ask for them."""
