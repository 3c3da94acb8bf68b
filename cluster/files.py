"""Small files that are replaced as a whole: after a crash either the old or the new content is there."""

from __future__ import annotations

from cluster.disk import Disk


def read_file(disk: Disk, path: str) -> bytes | None:
    """The file's content, or None when there is no such file."""
    if not disk.exists(path):
        return None
    file = disk.open(path)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def replace_file(disk: Disk, folder: str, name: str, content: bytes) -> None:
    """Durably make `content` the content of `folder/name`. Blocks. Raises OSError; then the old content stays."""
    temporary = f"{folder}/{name}.new"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, content)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, f"{folder}/{name}")
    disk.sync_directory(folder)
