"""Ports and sockets: the first that is free, and one line where none is."""

import errno
import os
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest

from hopscope.errors import ConfigError
from hopscope.web import listening as room
from hopscope.web.address import Address
from hopscope.web.listening import listening


def test_a_second_server_takes_the_next_port() -> None:
    with listening(Address()) as (first, one), listening(Address()) as (second, two):
        assert one.port is not None
        assert two.port is not None
        assert one.port < two.port
        assert first.getsockname() == ("127.0.0.1", one.port)
        assert second.getsockname() == ("127.0.0.1", two.port)
    with listening(Address()) as (_, again):
        assert again.port == one.port


def test_where_all_are_taken_any_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "NEXT", 0)
    with listening(Address()) as (opened, address):
        assert opened.getsockname()[1] == address.port > 1_023


def test_a_port_that_was_named_and_is_taken_is_an_error() -> None:
    with (
        listening(Address()) as (_, taken),
        pytest.raises(ConfigError) as caught,
        listening(Address(port=taken.port)),
    ):
        pass
    assert str(caught.value) == (
        f"--port {taken.port} is in use: choose another, or leave it out for a free one"
    )


def test_other_refusals_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, text in (
        (errno.EACCES, "--port 80 is not yours to open: choose one from 1,024 on"),
        (errno.EADDRNOTAVAIL, "--host 10.9.9.9 is no address of this machine"),
        (errno.ENOBUFS, "cannot listen at 10.9.9.9: No buffer space available"),
    ):
        error = OSError(number, os.strerror(number))
        monkeypatch.setattr(socket.socket, "bind", Mock(side_effect=error))
        with pytest.raises(ConfigError) as caught, listening(Address("10.9.9.9", 80)):
            pass
        assert str(caught.value).startswith(text)


def test_an_address_of_six_is_no_address_of_four() -> None:
    try:
        with listening(Address("::1")) as (opened, address):
            assert opened.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
            assert address.url == f"http://[::1]:{address.port}/"
    except ConfigError as error:
        pytest.skip(str(error))


def test_a_socket_of_a_server_that_was_killed_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert path.is_socket()
    with listening(Address(socket=path)):
        assert path.is_socket()
        with (
            pytest.raises(ConfigError, match="is another server's, which is running"),
            listening(Address(socket=path)),
        ):
            pass
    assert not path.exists()


def test_what_is_no_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with (
        pytest.raises(ConfigError, match="is there, and no socket of yours: choose another"),
        listening(Address(socket=path)),
    ):
        pass
    assert path.read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(ConfigError, match="no socket of yours"), listening(Address(socket=link)):
        pass


def test_a_socket_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    for name in ("none/s", "x" * 200):
        with (
            pytest.raises(ConfigError, match="cannot make the socket"),
            listening(Address(socket=tmp_path / name)),
        ):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_socket_that_somebody_else_put_there_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listening(Address(socket=path)):
        path.unlink()
        path.write_text("another's")
    assert path.read_text() == "another's"


def test_small_answers_go_out_at_once() -> None:
    with (
        listening(Address()) as (opened, address),
        socket.create_connection((address.host, address.port)),
        opened.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
