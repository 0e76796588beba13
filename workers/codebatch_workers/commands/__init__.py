"""The worker of a work batch. It executes one command after another, and an attempt outlives the coordinator."""
