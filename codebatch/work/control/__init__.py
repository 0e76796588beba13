"""Operations on batches of commands: run, follow, cancel, answer."""
