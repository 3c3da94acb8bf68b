"""The compose files, run by a container engine; `make test-compose` brings one."""
