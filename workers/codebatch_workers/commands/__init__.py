"""The worker of a work batch. It executes one command after another. A running command outlives the coordinator."""
