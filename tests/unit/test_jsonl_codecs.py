"""Compressed files: read whole or said to be damaged, and written like they were."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._codecs import HEAD_BYTES, Codec, Encoder, detect, read_members, reader
from purge_adapters._jsonl_lines import LogFile, lines_of

TEXT = b"one\ntwo\nthree\n" * 5000


def gzip_member(data: bytes, *, level: int = 6, name: str = "", mtime: int = 0) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(name, "wb", level, out, mtime) as stream:
        stream.write(data)
    return out.getvalue()


def zstd_frame(data: bytes, *, checksum: bool = False) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=checksum).compress(data)


def plain(data: bytes) -> bytes:
    return b"".join(reader(io.BytesIO(data)))


def again(data: bytes) -> bytes:
    """Return the same file as it is written anew."""
    out = io.BytesIO()
    codec = detect(data[:HEAD_BYTES])
    encoder = Encoder(out, codec)
    for member, block in read_members(io.BytesIO(data), codec):
        encoder.write(member, block)
    encoder.finish()
    return out.getvalue()


WHOLE = {
    "plain": TEXT,
    "gzip": gzip_member(TEXT),
    "gzip of several members": gzip_member(TEXT[:100]) + gzip_member(b"") + gzip_member(TEXT[100:]),
    "gzip with padding": gzip_member(TEXT[:100])
    + b"\0" * 70_000
    + gzip_member(TEXT[100:])
    + b"\0" * 512,
    "zstd": zstd_frame(TEXT, checksum=True),
    "zstd of several frames": zstd_frame(TEXT[:100]) + zstd_frame(b"") + zstd_frame(TEXT[100:]),
    "zstd with skippable frames": b"\x50\x2a\x4d\x18\x05\0\0\0hello" + zstd_frame(TEXT),
    "bzip2": bz2.compress(TEXT[:100]) + bz2.compress(TEXT[100:]),
    "xz": lzma.compress(TEXT[:100]) + b"\0" * 8 + lzma.compress(TEXT[100:]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_all_of_a_file_is_read(name: str) -> None:
    assert plain(WHOLE[name]) == TEXT


@pytest.mark.parametrize("name", [name for name in WHOLE if "plain" not in name])
@pytest.mark.parametrize("share", [0.3, 0.5, 1.0])
def test_a_file_that_is_cut_off_is_damaged_or_ends_with_a_whole_member(
    name: str, share: float
) -> None:
    data = WHOLE[name].rstrip(b"\0")
    cut = data[: min(int(len(data) * share), len(data) - 1)]
    seen = b""
    with suppress(Permanent):
        seen = plain(cut)
    assert seen in {b"", TEXT[:100]}
    assert not seen or "several" in name or name in ("bzip2", "xz", "gzip with padding")


@pytest.mark.parametrize("name", ["gzip", "gzip with padding", "zstd", "zstd of several frames"])
def test_something_else_behind_the_end_is_damage(name: str) -> None:
    with pytest.raises(Permanent) as caught:
        plain(WHOLE[name] + b"the crab pot licence, in the clear")
    assert caught.value.problem == ProblemCode.CORRUPT


@pytest.mark.parametrize("name", ["gzip", "zstd", "bzip2", "xz"])
def test_a_changed_byte_is_damage(name: str) -> None:
    data = bytearray(WHOLE[name])
    data[len(data) // 2] ^= 0x40
    with pytest.raises(Permanent):
        plain(bytes(data))


def test_what_stands_before_the_damage_is_read() -> None:
    data = gzip_member(TEXT) + gzip_member(TEXT)[:-20]
    blocks: list[bytes] = []
    with pytest.raises(Permanent):
        blocks.extend(iter(reader(io.BytesIO(data))))
    assert b"".join(reader(io.BytesIO(data), lenient=True)).startswith(TEXT)


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04rest", b"7z\xbc\xaf\x27\x1crest", b"age-encryption.org/v1\n"]
)
def test_an_archive_is_not_looked_into(data: bytes) -> None:
    with pytest.raises(Permanent) as caught:
        plain(data)
    assert caught.value.problem == ProblemCode.UNSUPPORTED
    assert b"".join(reader(io.BytesIO(data), lenient=True)) == data


def test_a_frame_that_needs_a_dictionary_is_not_looked_into() -> None:
    samples: list[bytes | bytearray | memoryview[int]] = [
        b"crab pot %d licence %d" % (number, number * 7) for number in range(2000)
    ]
    dictionary = zstandard.train_dictionary(4096, samples)
    data = zstandard.ZstdCompressor(dict_data=dictionary).compress(b"the crab pot licence")
    with pytest.raises(Permanent) as caught:
        plain(data)
    assert caught.value.problem == ProblemCode.UNSUPPORTED


@pytest.mark.parametrize("name", [name for name in WHOLE if "xz" not in name and "bz" not in name])
def test_a_file_written_anew_holds_the_same(name: str) -> None:
    assert plain(again(WHOLE[name])) == TEXT
    assert detect(again(WHOLE[name])) is detect(WHOLE[name])


@pytest.mark.parametrize("level", [1, 9])
def test_the_header_and_level_of_a_gzip_member_are_kept(level: int) -> None:
    data = gzip_member(TEXT, level=level, name="chat.jsonl", mtime=1234567890)
    made = again(data)
    assert made[:8] == data[:8]
    assert made[8] == data[8]
    assert made[10:21] == b"chat.jsonl\0"
    assert made == data[:9] + made[9:10] + data[10:]  # all but the operating system's number


def test_the_members_of_a_file_are_kept() -> None:
    data = gzip_member(b"one\n", name="a") + gzip_member(b"two\n", name="b")
    made = again(data)
    first = zlib.decompressobj(wbits=31)
    assert first.decompress(made) == b"one\n"
    assert zlib.decompressobj(wbits=31).decompress(first.unused_data) == b"two\n"


@pytest.mark.parametrize("checksum", [True, False])
def test_the_checksum_of_a_zstd_frame_is_kept(checksum: bool) -> None:
    made = again(zstd_frame(TEXT, checksum=checksum))
    assert zstandard.get_frame_parameters(made).has_checksum is checksum


def test_a_file_of_which_nothing_is_left_is_still_of_its_kind() -> None:
    for data in (gzip_member(b"one\n", name="a"), zstd_frame(b"one\n")):
        codec = detect(data)
        out = io.BytesIO()
        encoder = Encoder(out, codec)
        for member, _ in read_members(io.BytesIO(data), codec):
            encoder.write(member, b"")
        encoder.finish()
        assert detect(out.getvalue()) is codec
        assert plain(out.getvalue()) == b""


@pytest.mark.parametrize("codec", [Codec.BZIP2, Codec.XZ, Codec.CLOSED])
def test_what_is_only_read_is_refused_for_writing(codec: Codec) -> None:
    with pytest.raises(Permanent):
        Encoder(io.BytesIO(), codec)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 1000])
def test_lines_end_at_the_line_feed_and_nowhere_else(size: int) -> None:
    data = "a\u2028b\r\n\n\x85c\x0b\x0cd\re\n\x1cf".encode()
    blocks = (data[at : at + size] for at in range(0, len(data), size))
    lines = list(lines_of(blocks))
    assert [line.data for line in lines] == data.split(b"\n")
    assert [line.number for line in lines] == [1, 2, 3, 4]
    assert all(data[line.offset :].startswith(line.data) for line in lines)
    assert [line.ended for line in lines] == [True, True, True, False]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_text_is_read_as_lines_too(encoding: str) -> None:
    data = '{"id":"1","t":"café"}\n{"id":"2"}\n'.encode(encoding)
    blocks = (data[at : at + 7] for at in range(0, len(data), 7))
    assert [line.data.decode() for line in lines_of(blocks)] == [
        '{"id":"1","t":"café"}',
        '{"id":"2"}',
    ]


def test_a_log_is_read_as_it_was_when_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(TEXT)
    with LogFile(path) as log:
        with path.open("ab") as stream:
            stream.write(b"four\n")
        assert b"".join(line.data + b"\n" for line in log.lines()) == TEXT
        assert not log.has_changed()
        os.truncate(path, 100)
        assert log.has_changed()


def test_an_empty_file_has_no_line() -> None:
    assert list(lines_of(iter(()))) == []
    assert list(lines_of(iter((b"",)))) == []
