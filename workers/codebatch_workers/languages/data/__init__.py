"""HCL, JSON, SQL, TOML and YAML."""
