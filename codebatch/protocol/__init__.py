"""The boundary between processes, and between a process and the disk: messages, names of files, frames, launching."""
