"""The live page: an HTTP server on the loopback interface that shows the batches of a store while they run.

The server reads the store, holds no lock, and does not run batches. It can be killed at any time without an effect on a
batch. Only this package imports starlette, uvicorn and websockets (the extra `serve`).
"""
