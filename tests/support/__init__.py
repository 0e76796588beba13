"""Simulations: a disk that loses power, failing calls, and processes scheduled by a seed."""
