"""What is measured from within: programs that a scenario runs and times, or that print their own figures as JSON.

They are processes of their own so that what they import never weighs on the harness, whose memory its children inherit
for an instant (measuring.py), and so that both sides of a pair start equally cold.
"""
