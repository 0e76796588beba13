"""Valid code that a grammar does not support, and the stand-ins that make it parse."""
