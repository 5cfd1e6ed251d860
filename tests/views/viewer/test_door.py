"""Who may look: nobody without the token, no other web page, and nobody from another machine."""

import socket

import pytest

from evenhand.core.errors import UserError
from evenhand.views.viewer.browsing import RunBrowser
from evenhand.views.viewer.serving import Serving
from tests.errors import assert_names, raises_naming
from tests.views.viewer.asking import Asking

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


def _paths(asked: Asking) -> list[str]:
    """Every route that the pages have, and some that they do not have."""
    routes = [route.path for route in asked.served.door.app.routes]  # type: ignore[attr-defined]
    assert len(routes) == 2
    return [*(path.replace("{position}", "0") for path in routes),
            "/favicon.ico", "/static/x.css", "/no/such/page", "//"]  # fmt: skip


def test_without_the_token_every_route_is_401_by_every_method(asked: Asking) -> None:
    wrong = f"evenhand-view-{asked.served.port}=wrong"
    for path in _paths(asked):
        for method in METHODS:
            assert asked.bare(path, method).status == 401, (path, method)
        assert asked.bare(path, cookie=wrong).status == 401
        assert asked.bare(path, cookie="\x7f;=;" + wrong).status == 401
        assert asked.bare(f"{path}?token=wrong").status == 401
        assert asked.bare(f"{path}?token=").status == 401
        refused = asked.bare(path)
        assert "set-cookie" not in refused.head
        assert "item/0" not in refused.page


def test_with_it_pages_are_there_and_are_only_read(asked: Asking) -> None:
    assert [asked(path).status for path in _paths(asked)] == [200, 200, 404, 404, 404, 404]
    assert asked("/", "HEAD").page == ""
    for method in METHODS[2:]:
        assert asked("/", method).status == 405, method


def test_the_address_lets_in_once_by_a_cookie_that_no_script_and_no_other_site_gets(
    asked: Asking,
) -> None:
    served = asked.served
    welcome = asked.bare(served.link.partition(str(served.port))[2])
    assert welcome.status == 200
    assert welcome.head["refresh"] == "0; url=/"
    cookie, *rules = welcome.head["set-cookie"].split("; ")
    assert {rule.lower() for rule in rules} == {"httponly", "samesite=strict", "path=/"}
    assert asked.bare("/", cookie=cookie).status == 200


def test_the_address_lets_in_again_who_has_the_cookie_already(asked: Asking) -> None:
    link = asked.served.link.partition(str(asked.served.port))[2]
    for path in (link, "/?token=of-yesterday"):
        assert asked.bare(path, **asked.cookie).head["refresh"] == "0; url=/"


@pytest.mark.parametrize(
    "other", ['a={"x":1}', "foo", "a=b c", "k[x]=1", "n=caf\u00e9", "=", 'a="; b', ""]
)
def test_the_cookie_of_another_page_of_this_machine_locks_nobody_out(
    asked: Asking, other: str
) -> None:
    ours = asked.cookie["cookie"]
    assert asked.bare("/", cookie=f"{other}; {ours}").status == 200
    assert asked.bare("/", cookie=f"{ours};{other}").status == 200
    assert asked.bare("/", Cookie=other, cookie=ours).status == 200  # two lines
    assert asked.bare("/", cookie=other).status == 401


def test_the_address_that_a_browser_is_started_with_opens_one_time(asked: Asking) -> None:
    once = asked.served.link_once.partition(str(asked.served.port))[2]
    assert once != asked.served.link
    assert [asked.bare(once).status for _ in range(2)] == [200, 401]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:8888", 200),  # the other end of a tunnel
        ("evil.example", 403),
        ("evil.example:PORT", 403),
        ("127.0.0.1.evil.example:PORT", 403),
        ("", 403),
    ],
)
def test_a_name_that_was_let_point_to_this_machine_is_refused(
    asked: Asking, host: str, status: int
) -> None:
    named = host.replace("PORT", str(asked.served.port))
    assert asked.bare("/", host=named, **asked.cookie).status == status


def test_every_answer_forbids_keeping_framing_and_fetching(asked: Asking) -> None:
    for said in (asked(), asked("/item/0"), asked("/nowhere"), asked.bare("/")):
        assert said.head["cache-control"] == "no-store"
        assert said.head["referrer-policy"] == "no-referrer"
        policy = said.head["content-security-policy"]
        assert_names(policy, "default-src 'none'", "style-src 'unsafe-inline'")
        assert "frame-ancestors 'none'" in policy
        assert not [name for name in said.head if name.startswith("access-control")]


def test_it_listens_on_this_machine_alone_and_says_when_a_port_is_taken(asked: Asking) -> None:
    with socket.socket() as elsewhere, pytest.raises(ConnectionRefusedError):
        elsewhere.connect(("127.0.0.2", asked.served.port))
    browsed: RunBrowser = asked.browsed
    with raises_naming(UserError, f"port {asked.served.port}", "--port"):
        Serving(browsed, asked.served.port)


def test_a_viewer_that_cannot_start_leaves_no_socket_open(
    asked: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Serving(asked.browsed)

    def full() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(served._thread, "start", full)
    with pytest.raises(RuntimeError, match="new thread"):
        served.__enter__()
    assert served._socket.fileno() == -1
    with socket.socket() as again, pytest.raises(ConnectionRefusedError):
        again.connect(("127.0.0.1", served.port))
