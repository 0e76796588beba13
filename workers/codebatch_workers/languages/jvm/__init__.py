"""Java, Kotlin and Scala."""
