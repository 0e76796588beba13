"""Valid code that a grammar does not know, and the stand-ins that make it parse."""
