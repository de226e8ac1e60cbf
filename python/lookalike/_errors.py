"""What can go wrong."""


class LookalikeError(ValueError):
    """Something that was given is wrong: the message says what, and where."""


class FileError(LookalikeError, OSError):
    """A file that cannot be read or written, or is not what it should be."""
