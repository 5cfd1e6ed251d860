"""The two pages of the viewer, each made in a thread: a scan never holds up another request."""

from collections.abc import Callable

import anyio.to_thread
import polars as pl
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from evenhand.core.errors import EvenhandError, UserError
from evenhand.views.viewer.browsing import RunBrowser
from evenhand.views.viewer.facets import Facets
from evenhand.views.viewer.pages import item_page, list_page, said_page
from evenhand.views.viewer.wanted import ListQuery, whole

_AT_ONCE = 2  # our choice: pages that are made at once, so that memory does not grow with requests


def app_of(browsed: RunBrowser, facets: Facets) -> Starlette:
    """Give the pages of a run, for whoever is let in."""
    limiter = CapacityLimiter(_AT_ONCE)

    def page(path: str, make: Callable[[Request], HTMLResponse]) -> Route:
        async def answer(request: Request) -> HTMLResponse:
            return await anyio.to_thread.run_sync(_safely, make, request, limiter=limiter)

        return Route(path, answer, methods=["GET"])

    def listed(request: Request) -> HTMLResponse:
        query = ListQuery.of(request.query_params.multi_items())
        with facets.waiting():
            listing = browsed.listed(query)
        return HTMLResponse(list_page(browsed, facets, query, listing))

    def item(request: Request) -> HTMLResponse:
        query = ListQuery.of(request.query_params.multi_items())
        position = whole(request.path_params["position"])
        with facets.waiting():
            entry = None if position is None else browsed.one(position, query)
        if entry is None:
            return _said(404, "The run has no such item, or has not done it yet.")
        return HTMLResponse(item_page(browsed, query, entry))

    async def nowhere(_request: Request, _error: Exception) -> HTMLResponse:
        return _said(404, "There is no such page; the list of items is at /")

    routes = [page("/", listed), page("/item/{position}", item)]
    return Starlette(routes=routes, exception_handlers={404: nowhere})


def _safely(make: Callable[[Request], HTMLResponse], request: Request) -> HTMLResponse:
    """A run folder may come from a stranger: what is wrong with it is said on the page."""
    try:
        return make(request)
    except UserError as error:
        return _said(400, str(error))
    except EvenhandError as error:
        return _said(500, str(error))
    # Whatever a hostile table makes of its reader; a panic of polars is no `Exception`.
    except (Exception, pl.exceptions.PanicException) as error:
        return _said(500, f"This cannot be read ({type(error).__name__}): {error}")


def _said(status: int, text: str) -> HTMLResponse:
    return HTMLResponse(said_page(str(status), text), status)
