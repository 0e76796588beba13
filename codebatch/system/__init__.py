"""Files, locks, processes and clocks of the operating system: the only code that makes system calls."""
