"""Where a server listens."""

import pytest

from knowformer.errors import ConfigError
from knowformer.server.running import address_of, bind


def test_a_free_port_is_found_and_one_in_use_is_refused() -> None:
    with bind("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert address_of(listening) == f"http://127.0.0.1:{port}/"
        with pytest.raises(ConfigError, match=r"in use.*`port`"):
            bind("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1"):
        bind("192.0.2.1", 0)
