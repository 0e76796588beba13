"""The process that works: its channel, the units it is given, and the tasks it takes files through."""
