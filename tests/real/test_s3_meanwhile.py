"""What others do to a bucket while it is worked on, and what a server refuses for a part of it."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from purge.adapter import Residue
from purge.errors import Permanent
from purge.state import ProblemCode
from purge_adapters._s3_errors import mapped
from tests.support import s3_servers
from tests.support.s3_buckets import (
    BOTH,
    OTHER,
    PHRASE,
    WORDS,
    Bucket,
    gaps,
    lines,
    removals_of,
    residue,
    with_traces,
)

WHOLE: dict[str, Any] = {"format": "object", "id": None, "text": ()}


@pytest.fixture(params=["moto", "seaweed"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    server = s3_servers.moto() if request.param == "moto" else s3_servers.seaweed()
    return Bucket(server, server.bucket(versioned=True))


@pytest.fixture(params=["moto", "seaweed"])
def locked(request: pytest.FixtureRequest) -> Bucket:
    server = s3_servers.moto() if request.param == "moto" else s3_servers.seaweed()
    return Bucket(server, server.bucket(locked=True))


def test_a_write_between_reading_and_writing_is_not_overwritten(bucket: Bucket) -> None:
    bucket.put("x.jsonl", BOTH)
    bucket.put("y.jsonl", BOTH)
    adapter = bucket.adapter()
    matches = bucket.matches()
    newer = lines(("a", WORDS), ("b", OTHER), ("c", "came just now"))
    written: list[str] = []

    def write_first(params: Any, **_: Any) -> None:
        if not written and "x.jsonl" in params["url_path"]:
            written.append(bucket.put("x.jsonl", newer))

    adapter._store.client.meta.events.register("before-call.s3.PutObject", write_first)
    left = list(adapter.remove(removals_of(matches)))
    assert written
    assert [item.problem for item in left] == [ProblemCode.CHANGED_UNDERNEATH]
    assert bucket.get("x.jsonl") == newer
    assert bucket.get("y.jsonl") == lines(("b", OTHER))


def test_a_whole_object_that_changed_is_not_deleted(bucket: Bucket) -> None:
    bucket.put("x.txt", WORDS.encode())
    matches = bucket.matches(**WHOLE)
    bucket.put("x.txt", OTHER.encode())
    left = list(bucket.adapter(**WHOLE).remove(removals_of(matches)))
    assert [item.problem for item in left] == [ProblemCode.CHANGED_UNDERNEATH]
    assert bucket.get("x.txt") == OTHER.encode()


def test_a_whole_object_written_just_before_the_delete_stays(bucket: Bucket) -> None:
    bucket.put("x.txt", WORDS.encode())
    adapter = bucket.adapter(**WHOLE)
    matches = bucket.matches(**WHOLE)

    def write_first(**_: Any) -> None:
        bucket.put("x.txt", OTHER.encode())

    adapter._store.client.meta.events.register("before-call.s3.DeleteObject", write_first)
    left = list(adapter.remove(removals_of(matches)))
    assert [item.problem for item in left] == [ProblemCode.CHANGED_UNDERNEATH]
    assert bucket.get("x.txt") == OTHER.encode()


def test_a_version_that_became_current_again_is_left(bucket: Bucket) -> None:
    bucket.put("x.jsonl", lines(("a", WORDS)))
    newer = bucket.put("x.jsonl", lines(("b", OTHER)))
    copies = residue(bucket.look(PHRASE))
    with closing(bucket.client()) as client:
        client.delete_object(Bucket=bucket.name, Key="x.jsonl", VersionId=newer)
    (left,) = bucket.adapter().sanitize(copies)
    assert left.problem is ProblemCode.CHANGED_UNDERNEATH
    assert bucket.get("x.jsonl") == lines(("a", WORDS))


def test_one_error_in_a_successful_answer_stops_no_other(locked: Bucket) -> None:
    for key in ("x.jsonl", "y.jsonl", "z.jsonl"):
        locked.put(key, BOTH)
    matches = locked.matches()
    list(locked.adapter().remove(removals_of(matches)))
    full = with_traces(PHRASE, matches)
    copies = residue(locked.look(full))
    assert len([copy for copy in copies if copy.fixable]) == 3
    held = str(next(c.handle["version"] for c in copies if c.handle["key"] == "y.jsonl"))
    with closing(locked.client()) as client:
        client.put_object_legal_hold(
            Bucket=locked.name, Key="y.jsonl", VersionId=held, LegalHold={"Status": "ON"}
        )
    (left,) = locked.adapter().sanitize(copies)
    assert left.problem is ProblemCode.NO_PERMISSION
    (copy,) = residue(locked.look(full))
    assert copy.handle["version"] == held
    assert "legal hold" in copy.why
    assert copy.until is None
    assert not copy.fixable


def test_the_date_of_a_retention_is_the_object_s_own(locked: Bucket) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=40)
    locked.put("x.jsonl", BOTH, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until)
    locked.put("y.jsonl", BOTH)
    (copy,) = residue(locked.run(bypass_governance=True)[2])
    assert copy.until == until
    assert not copy.fixable
    assert copy.keys >= {1}


def test_an_upload_to_another_key_is_said_and_not_aborted(bucket: Bucket) -> None:
    bucket.put("in/x.jsonl", BOTH)
    with closing(bucket.client()) as client:
        for key in ("in/x.jsonl", "in/else.jsonl", "out/x.jsonl"):
            upload = client.create_multipart_upload(Bucket=bucket.name, Key=key)["UploadId"]
            client.upload_part(
                Bucket=bucket.name, Key=key, UploadId=upload, PartNumber=1, Body=BOTH
            )
        _, _, seen = bucket.run(prefix="in/")
        left = client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
    assert sorted(upload["Key"] for upload in left) == ["in/else.jsonl", "out/x.jsonl"]
    (gap,) = gaps(seen)
    assert "upload" in gap.why


def test_what_came_while_versioning_was_suspended_goes_too(bucket: Bucket) -> None:
    bucket.put("x.jsonl", BOTH)
    with closing(bucket.client()) as client:
        client.put_bucket_versioning(
            Bucket=bucket.name, VersioningConfiguration={"Status": "Suspended"}
        )
    bucket.put("x.jsonl", lines(("a", WORDS), ("b", OTHER), ("c", "third")))
    _, left, seen = bucket.run()
    assert left == []
    assert residue(seen) == []
    assert WORDS.encode() not in bucket.bytes()
    assert bucket.get("x.jsonl") == lines(("b", OTHER), ("c", "third"))


def test_a_dry_look_says_what_a_run_would_leave(bucket: Bucket) -> None:
    bucket.put("x.jsonl", lines(("a", WORDS), ("old", "only here")))
    bucket.put("x.jsonl", BOTH)
    before = bucket.versions()
    (copy,) = residue(bucket.look(PHRASE))
    assert isinstance(copy, Residue)
    assert "1 other record" in copy.why
    assert bucket.versions() == before


def test_a_request_that_cannot_be_made_is_about_this_object_alone() -> None:
    from botocore.exceptions import (  # type: ignore[import-untyped]  # no types in it
        ParamValidationError,
    )

    with pytest.raises(Permanent) as raised, mapped():
        raise ParamValidationError(report="Non ascii characters found")
    assert raised.value.problem == ProblemCode.UNSUPPORTED
