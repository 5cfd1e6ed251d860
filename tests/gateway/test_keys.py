"""T5: only a whole key opens, and a policy file that holds anything but hashes is refused."""

import base64
import hashlib
import hmac
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.gateway.keys import Keyring, new_key
from tests.errors import raises_naming

TENANTS = [f"team-{number}" for number in range(20)]
KEYS = {tenant: [new_key() for _ in range(2)] for tenant in TENANTS}
OWNERS = {key: tenant for tenant, pairs in KEYS.items() for key, _ in pairs}
HASHES = [written for pairs in KEYS.values() for _, written in pairs]


@pytest.fixture(scope="module")
def keyring() -> Keyring:
    return Keyring({tenant: [written for _, written in pairs] for tenant, pairs in KEYS.items()})


def test_a_new_key_holds_32_random_bytes_and_comes_with_its_hash() -> None:
    key, written = new_key()
    assert len(base64.urlsafe_b64decode(key.removeprefix("evenhand-") + "=")) == 32
    assert written == "sha256:" + hashlib.sha256(key.encode()).hexdigest()
    assert new_key() != (key, written)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer  "])
def test_each_key_opens_for_its_own_tenant(keyring: Keyring, scheme: str) -> None:
    for key, tenant in OWNERS.items():
        assert keyring.tenant_of(f"{scheme} {key}") == tenant
        assert keyring.tenant_of(f"{scheme} {key}".encode()) == tenant


def _flip(luck: random.Random, key: str) -> bytes:
    data = bytearray(f"Bearer {key}".encode())
    data[luck.randrange(7, len(data))] ^= 1 << luck.randrange(8)
    return bytes(data)


def _shuffled(luck: random.Random, key: str) -> str:
    body = list(key)
    luck.shuffle(body)
    return f"Bearer {''.join(body)}"


FUZZES: list[Callable[[random.Random, str], str | bytes]] = [
    _flip,
    _shuffled,
    lambda luck, key: f"Bearer {key[: luck.randrange(len(key))]}",
    lambda luck, key: f"Bearer {key[luck.randrange(1, len(key)) :]}",
    lambda luck, key: f"Bearer {key.swapcase()}",
    lambda luck, key: f"Bearer {key}{chr(luck.randrange(1, 0x110000))}",
    lambda luck, key: luck.choice(["Basic ", "Token ", " ", "Bearer: ", "Bearer\t"]) + key,
    lambda luck, key: key,
    lambda luck, key: f"Bearer{key}",
    lambda luck, key: f"Bearer {key}, Bearer {key}",
    lambda luck, key: f"Bearer {luck.choice(HASHES)}",
    lambda luck, key: f"Bearer {luck.choice(HASHES).removeprefix('sha256:')}",
    lambda luck, key: b"Bearer " + bytes.fromhex(luck.choice(HASHES).removeprefix("sha256:")),
    lambda luck, key: f"Bearer {key} " + " " * luck.randrange(3),
    lambda luck, key: f"\nBearer {key}",
    lambda luck, key: f"Bearer {key}\n",
    lambda luck, key: f"Bearer {key}\0",
    lambda luck, key: f"Ｂearer {key}",  # a full-width letter
    lambda luck, key: f"Bearer {key.replace('e', 'е', 1)}",  # a Cyrillic one
    lambda luck, key: f"Bearer {key}" + "A" * luck.randrange(1, 100_000),
    lambda luck, key: luck.randbytes(luck.randrange(200)),
    lambda luck, key: "".join(chr(luck.randrange(0x110000)) for _ in range(luck.randrange(80))),
]


def test_none_of_10_000_damaged_headers_opens_and_none_raises(keyring: Keyring) -> None:
    luck = random.Random(5)
    keys, tried, opened = list(OWNERS), 0, []
    while tried < 10_000:
        for fuzz in FUZZES:
            value = fuzz(luck, luck.choice(keys))
            tried += 1
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            whole = text[:7].lower() == "bearer " and text[7:].lstrip(" ") in OWNERS
            if keyring.tenant_of(value) is not None and not whole:
                opened.append(value)
    assert opened == []


@given(st.none() | st.text() | st.binary())
def test_whatever_a_stranger_sends_is_nobody(value: str | bytes | None) -> None:
    keyring = Keyring({"team": HASHES[:1]})
    assert keyring.tenant_of(value) is None
    if isinstance(value, str):
        assert keyring.tenant_of("Bearer " + value) is None


def test_what_is_no_header_at_all_is_nobody(keyring: Keyring) -> None:
    for value in (0, 1.5, True, [], {}, object(), bytearray(b"Bearer x"), ("Bearer", "x")):
        assert keyring.tenant_of(value) is None  # type: ignore[arg-type]


def test_every_hash_is_compared_wherever_the_right_one_stands(
    keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, compared = hmac.compare_digest, 0

    def counting(one: bytes, other: bytes) -> bool:
        nonlocal compared
        compared += 1
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    first, *_, last = OWNERS
    for key in (first, last, new_key()[0]):
        compared = 0
        keyring.tenant_of(f"Bearer {key}")
        assert compared == len(OWNERS)


def test_a_weak_key_does_not_open_though_its_hash_stands_in_the_file() -> None:
    for weak in ("", "secret", "x" * 42):
        keyring = Keyring({"team": [f"sha256:{hashlib.sha256(weak.encode()).hexdigest()}"]})
        assert keyring.tenant_of(f"Bearer {weak}") is None
    strong = "x" * 43
    keyring = Keyring({"team": [f"sha256:{hashlib.sha256(strong.encode()).hexdigest()}"]})
    assert keyring.tenant_of(f"Bearer {strong}") == "team"


@pytest.mark.parametrize(
    "written",
    [
        "canary-plain-key",
        new_key()[0],
        "",
        "sha256:",
        "sha256:" + "0" * 63,
        "sha256:" + "0" * 65,
        "sha256:" + "G" * 64,
        "SHA256:" + "0" * 64,
        "sha256:" + "0" * 64 + "\n",
        "md5:" + "0" * 32,
        " sha256:" + "0" * 64,
    ],
)
def test_what_is_no_hash_stops_the_start_and_is_not_quoted(written: str) -> None:
    with pytest.raises(UserError) as caught:
        Keyring({"team": [written]})
    assert str(caught.value).endswith("evenhand gateway key")
    assert len(written) < 10 or written.strip() not in str(caught.value)


def test_hashes_that_are_no_list_are_read_as_one() -> None:
    key, written = new_key()
    assert Keyring({"team": written}).tenant_of(f"Bearer {key}") == "team"
    with raises_naming(UserError, "evenhand gateway key"):
        Keyring({"team": [None]})  # type: ignore[list-item]


def test_one_key_for_two_tenants_stops_the_start() -> None:
    with raises_naming(UserError, "'one'", "'other'", "evenhand gateway key"):
        Keyring({"one": HASHES[:1], "other": HASHES[:1]})


def test_a_keyring_without_keys_opens_for_nobody() -> None:
    assert Keyring({}).tenant_of(f"Bearer {new_key()[0]}") is None
    assert Keyring({"locked-out": []}).tenant_of(f"Bearer {new_key()[0]}") is None
