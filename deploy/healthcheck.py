"""Whether the process of this container is ready: the image's health check. Imports little, for it runs often."""

import os
import socket
import sys

ANSWER_SECONDS = 2.0


def ready(address: str) -> bool:
    """Whether GET /readyz on this port of this machine is answered with status 200."""
    port = int(address.rpartition(":")[2])
    try:
        with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection.recv(64).split(b" ")[1:2] == [b"200"]
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if ready(os.environ.get("TRIZONE_METRICS_LISTEN", "0.0.0.0:9090")) else 1)
