"""Files that a user names for a result: they are written once and never over another file."""

from pathlib import Path

from evenhand.core.errors import UserError


def refuse_taken(path: Path) -> None:
    """Refuse a name that is taken, also by a dangling link, or whose folder is missing.

    Args:
        path: The file to write.

    Raises:
        UserError: If the file exists, or its folder does not.
    """
    if path.exists() or path.is_symlink():
        raise UserError(f"{path} already exists. Move it, or choose another file")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist")


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet.

    Args:
        path: The file to write.
        data: Its content.

    Raises:
        UserError: If the file exists, or cannot be written.
    """
    refuse_taken(path)
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        refuse_taken(path)
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
