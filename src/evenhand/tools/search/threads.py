"""The threads in which searches wait and pages are read, apart from the event loop's own: by those
a run writes its parts, and a page that is slow to read must not keep them waiting."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

_T = TypeVar("_T")
_Given = TypeVarTuple("_Given")
_POOL = ThreadPoolExecutor(8, "evenhand-search")  # our choice: as many as pages come at once


async def in_thread(work: Callable[[*_Given], _T], *args: *_Given) -> _T:
    return await asyncio.get_running_loop().run_in_executor(_POOL, work, *args)
