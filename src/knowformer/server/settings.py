"""What a server is told when it starts, and the limits that it keeps."""

from dataclasses import dataclass, field

from knowformer.server.tokens import Tokens

MAX_ANSWERS = 1000
MAX_SAMPLES = 32
MAX_NAME = 2000  # characters
MAX_TEXT = 4000  # of a note or a reason
MAX_CANDIDATES = 10_000
MAX_EVIDENCE = 20  # paths, and prototypes
MAX_CHANGES = 100  # facts of a what-if
MAX_PAGE = 500  # rows of a list


@dataclass(frozen=True)
class Settings:
    """How a server is reached, by whom, and how much it takes on."""

    host: str = "127.0.0.1"
    tokens: Tokens | None = None
    """Who may ask; None: whoever reaches the server."""
    read_only: bool = False
    allowed_hosts: frozenset[str] = field(default_factory=frozenset[str])
    """Names that the server answers to; none: any, or those of this machine if bound to it."""
    max_body: int = 1 << 18
    """Bytes of a request as JSON."""
    max_upload: int = 1 << 26
    """Bytes of a file of facts or questions."""
    max_waiting: int = 256
    """Questions that wait; a server with more of them refuses the next."""
    max_long: int = 16
    """Explanations and the like that wait."""
    time_limit: float = 60.0
    """Seconds for a request."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOCAL_NAMES


LOCAL_NAMES = frozenset({"127.0.0.1", "::1", "localhost"})
