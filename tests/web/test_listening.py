"""Ports and sockets: the first that is free, and one line where none is."""

import errno
import os
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest

from hopscope.errors import ConfigError
from hopscope.web import serving as room
from hopscope.web.address import Address
from hopscope.web.serving import listening


def refused(address: Address) -> str:
    """Why it cannot be listened at."""
    with pytest.raises(ConfigError) as caught, listening(address):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_second_server_takes_the_next_port_and_small_answers_go_out_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listening(Address()) as (first, one), listening(Address()) as (second, two):
        assert one.port is not None
        assert two.port is not None
        assert one.port < two.port
        assert first.getsockname() == ("127.0.0.1", one.port)
        assert second.getsockname() == ("127.0.0.1", two.port)
        taken = f"--port {one.port} is in use: choose another, or leave it out for a free one"
        assert refused(Address(port=one.port)) == taken
        with socket.create_connection((one.host, one.port)), first.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    with listening(Address()) as (_, again):
        assert again.port == one.port
    monkeypatch.setattr(room, "NEXT", 0)  # where all are taken, any will do
    with listening(Address()) as (opened, address):
        assert opened.getsockname()[1] == address.port > 1_023


def test_other_refusals_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, text in (
        (errno.EACCES, "--port 80 needs root rights: choose one from 1,024 on"),
        (errno.EADDRNOTAVAIL, "--host 10.9.9.9 is not an address of this machine"),
        (errno.ENOBUFS, "cannot listen at 10.9.9.9: No buffer space available"),
    ):
        error = OSError(number, os.strerror(number))
        monkeypatch.setattr(socket.socket, "bind", Mock(side_effect=error))
        assert refused(Address("10.9.9.9", 80)).startswith(text)


def test_an_address_of_six_is_no_address_of_four() -> None:
    try:
        with listening(Address("::1")) as (opened, address):
            assert opened.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
            assert address.url == f"http://[::1]:{address.port}/"
    except ConfigError as error:
        pytest.skip(str(error))


def test_a_socket_of_a_server_that_was_killed_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    path, notes, link = tmp_path / "s", tmp_path / "notes", tmp_path / "link"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listening(Address(socket=path)):
        assert "is another server's, which is running" in refused(Address(socket=path))
    assert not path.exists()
    notes.write_text("mine")
    link.symlink_to(notes)
    for other in (notes, link):
        told = "is there, and no socket of yours: choose another"
        assert told in refused(Address(socket=other))
    for name in ("none/s", "x" * 200):
        assert "cannot make the socket" in refused(Address(socket=tmp_path / name))
    with listening(Address(socket=path)):  # and somebody else puts a file there
        path.unlink()
        path.write_text("another's")
    assert (path.read_text(), notes.read_text()) == ("another's", "mine")
    assert {each.name for each in tmp_path.iterdir()} == {"s", "notes", "link"}
