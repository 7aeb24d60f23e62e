import pytest

from tests.outputs.kernels import TappedKernel


@pytest.fixture(scope="module")
def kernel():
    """One real kernel for the tests of a file."""
    tapped = TappedKernel()
    yield tapped
    tapped.close()
