"""Every backend in turn: registering one is enough for it to be tested here.

What is compared with the reference is asked of the others alone, by the mark ``each_compiled``.
"""

import pytest

from knowformer.errors import BackendUnavailableError
from knowformer.kernels.interface import Backend, backend_names, select_backend


@pytest.fixture(params=backend_names())
def backend_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def backend(backend_name: str) -> Backend:
    try:
        return select_backend(backend_name)
    except BackendUnavailableError as error:
        pytest.skip(str(error))
