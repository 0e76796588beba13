"""Scenarios. Each module measures one subject and yields rows; `catalogue` lists the scenarios."""
