"""Engines, which execute parts of a batch: Dask, Parsl, and a pool of processes on this machine."""
