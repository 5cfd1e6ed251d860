from bbq.conftest import records
from cli.conftest import endpoint, evenhand

__all__ = ["endpoint", "evenhand", "records"]
