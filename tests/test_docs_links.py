"""What looks through the links of the documentation finds those that lead nowhere."""

from pathlib import Path

from links import broken


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a b.html").write_text("<p id='here'>")
    (tmp_path / "picture.svg").touch()
    good = ("#own", "a%20b.html", "a%20b.html#here", "https://elsewhere.org/x", "mailto:a@b.c", "#")
    bad = ("#gone", "a%20b.html#gone", "c.html", "../")
    links = "".join(f'<a href="{link}">' for link in (*good, *bad))
    (tmp_path / "index.html").write_text(f'<p id="own">{links}<img src="picture.svg">')
    assert broken(tmp_path) == [f"index.html: {link} leads nowhere" for link in sorted(bad)]
