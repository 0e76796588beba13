"""What tasks are written against: what they are, what they are given, and the project that some of them see."""
