from tests.cli.conftest import endpoint, evenhand
from tests.instruments.bbq.conftest import records

__all__ = ["endpoint", "evenhand", "records"]
