"""What tests of the page's answers share."""

import pytest

from hopscope.store import Store
from hopscope.web.views import Views


@pytest.fixture(scope="session")
def views(tmp_path_factory: pytest.TempPathFactory) -> Views:
    """Views of an empty store, with what comes with hopscope."""
    return Views(Store(tmp_path_factory.mktemp("nothing") / "runs"))
