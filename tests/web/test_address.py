"""Where the server may listen, and how names of servers are read."""

from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.errors import ConfigError
from hopscope.web.address import Address, Origin, decided, names_of

SOCKET = Path("x.sock")


ALLOWED = (
    ("127.0.0.1", None, None, (), Address()),
    ("localhost", 9000, None, (), Address("127.0.0.1", 9000)),
    ("::1", None, None, (), Address("::1")),
    ("10.1.2.3", 8384, None, (), Address("10.1.2.3", 8384)),
    ("0.0.0.0", 8384, None, ("http://lab:8384",), Address("0.0.0.0", 8384)),
    ("::", None, None, ("https://lab.example",), Address("::")),
    ("127.0.0.1", None, SOCKET, (), Address(socket=SOCKET)),
)
NO_ORIGIN = (
    "", "null", "*", "lab.example", "http://lab.example/", "http://*.example", "ftp://lab",
    "http://me@lab", "http://LAB", "http://lab:80", "http://lab:0", "http://lab#x",
    "https://lab:443", "http://läb", "http://lab x", "http://",
)  # fmt: skip
EVERY = "is every address of this machine"
REFUSED = (
    *((host, None, None, (), EVERY) for host in ("0.0.0.0", "::", "::ffff:0.0.0.0")),
    *((host, None, None, (), "expected an address") for host in ("0", "", "*", "lab.example")),
    *(("127.0.0.1", port, None, (), "expected 1 to 65,535") for port in (0, 65536)),
    ("127.0.0.1", 80, SOCKET, (), "--socket needs neither --host nor --port"),
    ("10.1.2.3", None, SOCKET, (), "--socket needs neither --host nor --port"),
    *(("127.0.0.1", None, None, (each,), "--trusted-origin is") for each in NO_ORIGIN),
)


def test_where_it_may_listen_is_decided_before_a_port_opens() -> None:
    for *asked, trusted, address in ALLOWED:
        found, origins = decided(*asked, trusted)
        assert (found, tuple(map(str, origins))) == (address, trusted)
    for *asked, text in REFUSED:
        with pytest.raises(ConfigError) as caught:
            decided(*asked)
        assert text in str(caught.value), asked
        assert "\n" not in str(caught.value)


def test_an_address_that_was_named_is_trusted_and_every_address_is_not() -> None:
    lab = Origin("https", "lab.example", 443)
    assert names_of(Address("10.1.2.3", 8384), ()) == (Origin("http", "10.1.2.3", 8384),)
    assert names_of(Address("0.0.0.0", 8384), (lab,)) == (lab,)
    assert names_of(Address(socket=SOCKET), ()) == ()
    six = names_of(Address("fe80::1", 8384), ())
    assert str(six[0]) == "http://[fe80::1]:8384"
    assert Address("::1", 8384).url == "http://[::1]:8384/"


@given(st.text(alphabet="localhost127.evi:[]@/% \t0", max_size=24))
def test_no_text_is_taken_for_this_machine_that_python_takes_for_another(text: str) -> None:
    origin = Origin.at("http", text)
    if origin is None or not origin.is_loopback or origin.name == "localhost":
        return
    assert ip_address(origin.name.strip("[]")).is_loopback


@given(st.sampled_from(["http", "https"]), st.text("a9.-", min_size=1, max_size=20),
       st.integers(1, 65535))  # fmt: skip
def test_an_origin_is_read_as_it_is_written(scheme: str, name: str, port: int) -> None:
    origin = Origin(scheme, name, port)
    assert Origin.read(str(origin)) == origin
    assert Origin.at(scheme, f"{name}:{port}") == origin
    assert Origin.at(scheme, f"x{name}:{port}") != origin
