"""Where the server may listen, and how names of servers are read."""

from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.errors import ConfigError
from hopscope.web.address import Address, Authority, Origin, decided, names_of

SOCKET = Path("x.sock")


@pytest.mark.parametrize(
    ("host", "port", "socket", "trusted", "address"),
    [
        ("127.0.0.1", None, None, (), Address()),
        ("localhost", 9000, None, (), Address("127.0.0.1", 9000)),
        ("::1", None, None, (), Address("::1")),
        ("10.1.2.3", 8384, None, (), Address("10.1.2.3", 8384)),
        ("0.0.0.0", 8384, None, ("http://lab:8384",), Address("0.0.0.0", 8384)),
        ("::", None, None, ("https://lab.example",), Address("::")),
        ("127.0.0.1", None, SOCKET, (), Address(socket=SOCKET)),
    ],
)
def test_what_is_allowed(
    host: str, port: int | None, socket: Path | None, trusted: tuple[str, ...], address: Address
) -> None:
    found, origins = decided(host, port, socket, trusted)
    assert found == address
    assert tuple(map(str, origins)) == trusted


@pytest.mark.parametrize(
    ("host", "port", "socket", "trusted", "text"),
    [
        ("0.0.0.0", None, None, (), "--host 0.0.0.0 is every address of this machine; expected"),
        ("::", None, None, (), "--host :: is every address of this machine"),
        ("::ffff:0.0.0.0", None, None, (), "is every address of this machine"),
        ("0", None, None, (), "--host is '0'; expected an address such as 127.0.0.1"),
        ("", None, None, (), "--host is ''; expected an address"),
        ("*", None, None, (), "--host is '*'; expected an address"),
        ("lab.example", None, None, (), "--host is 'lab.example'; expected an address"),
        ("127.0.0.1", 0, None, (), "--port is 0; expected 1 to 65,535"),
        ("127.0.0.1", 65536, None, (), "--port is 65536; expected 1 to 65,535"),
        ("127.0.0.1", 80, SOCKET, (), "--socket needs neither --host nor --port"),
        ("10.1.2.3", None, SOCKET, (), "--socket needs neither --host nor --port"),
        *(
            ("127.0.0.1", None, None, (origin,), "--trusted-origin is")
            for origin in (
                "", "null", "*", "lab.example", "http://lab.example/", "http://*.example",
                "ftp://lab", "http://me@lab", "http://LAB", "http://lab:80", "http://lab:0",
                "http://lab#x", "https://lab:443", "http://läb", "http://lab x", "http://",
            )
        ),
    ],
)  # fmt: skip
def test_what_is_refused_before_a_port_opens(
    host: str, port: int | None, socket: Path | None, trusted: tuple[str, ...], text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        decided(host, port, socket, trusted)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_address_that_was_named_is_trusted_and_every_address_is_not() -> None:
    lab = Origin("https", "lab.example", 443)
    assert names_of(Address("10.1.2.3", 8384), ()) == (Origin("http", "10.1.2.3", 8384),)
    assert names_of(Address("0.0.0.0", 8384), (lab,)) == (lab,)
    assert names_of(Address(socket=SOCKET), ()) == ()
    six = names_of(Address("fe80::1", 8384), ())
    assert str(six[0]) == "http://[fe80::1]:8384"
    assert Address("::1", 8384).url == "http://[::1]:8384/"


@given(st.ip_addresses(v=4).map(str))
def test_an_address_is_of_this_machine_by_its_number(text: str) -> None:
    place = Authority.read(text)
    assert place is not None
    assert place.is_loopback == (ip_address(text).packed[0] == 127)


@given(st.ip_addresses(v=6))
def test_so_is_one_in_brackets(address: object) -> None:
    place = Authority.read(f"[{address}]")
    assert place is not None
    assert place.is_loopback == (int(address) == 1)


@given(st.text(alphabet="localhost127.evi:[]@/% \t0", max_size=24))
def test_no_text_is_taken_for_this_machine_that_python_takes_for_another(text: str) -> None:
    place = Authority.read(text)
    if place is None or not place.is_loopback or place.name == "localhost":
        return
    assert ip_address(place.name.strip("[]")).is_loopback


@given(st.sampled_from(["http", "https"]), st.text("a9.-", min_size=1, max_size=20),
       st.integers(1, 65535))  # fmt: skip
def test_an_origin_is_read_as_it_is_written(scheme: str, name: str, port: int) -> None:
    origin = Origin(scheme, name, port)
    assert Origin.read(str(origin)) == origin
    assert origin.is_at(Authority(name, port))
    assert not origin.is_at(Authority(f"x{name}", port))
