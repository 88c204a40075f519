"""What an S3 bucket can hold and forbid, and what must become of it. On moto's server, and on a
real one for the paths that moto does not perform as S3 does."""

from __future__ import annotations

import gzip
import io
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # no types in it
import pyarrow  # type: ignore[import-untyped]  # no types in it
import pyarrow.parquet  # type: ignore[import-untyped]  # no types in it
import pytest
from moto import mock_aws

from purge.adapter import Action, Examined, Match, Site
from purge.state import ProblemCode
from purge.targets import Spared, Target, TargetKind, Targets
from purge_adapters._s3_settings import S3Settings
from purge_adapters.s3 import S3Adapter
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
)


@pytest.fixture
def plain() -> Bucket:
    server = s3_servers.moto()
    return Bucket(server, server.bucket())


@pytest.fixture
def versioned() -> Bucket:
    server = s3_servers.moto()
    return Bucket(server, server.bucket(versioned=True))


@pytest.fixture
def locked() -> Bucket:
    server = s3_servers.moto()
    return Bucket(server, server.bucket(versioned=True, locked=True))


@pytest.fixture(params=["moto", "seaweed"])
def kept(request: pytest.FixtureRequest) -> Bucket:
    """A bucket with versions, on either server."""
    server = s3_servers.moto() if request.param == "moto" else s3_servers.seaweed()
    return Bucket(server, server.bucket(versioned=True))


# Versions.


def test_every_version_that_holds_it_goes_and_no_read_returns_an_older_one(kept: Bucket) -> None:
    kept.put("x.jsonl", lines(("a", WORDS)))
    kept.put("x.jsonl", BOTH)
    _, left, seen = kept.run()
    assert left == []
    assert WORDS.encode() not in kept.bytes()
    assert kept.get("x.jsonl") == lines(("b", OTHER))
    assert residue(seen) == []


def test_neighbours_that_stand_only_in_an_old_version_are_counted_and_kept(kept: Bucket) -> None:
    kept.put("x.jsonl", lines(("a", WORDS), ("old", "only here"), ("older", "and here")))
    kept.put("x.jsonl", BOTH)
    _, _, seen = kept.run()
    (copy,) = residue(seen)
    assert not copy.fixable
    assert "2 " in copy.why
    assert b"only here" in kept.bytes()
    _, _, after = kept.run(versions="delete")
    assert residue(after) == []
    assert WORDS.encode() not in kept.bytes()


def test_a_whole_object_leaves_no_marker_over_nothing(kept: Bucket) -> None:
    kept.put("a.txt", WORDS.encode())
    kept.put("b.txt", OTHER.encode())
    kept.run(format="object", id=None, text=())
    assert [(key, marker) for key, _, marker in kept.versions()] == [("b.txt", False)]


def test_a_delete_marker_stays_while_anything_is_left_under_it(versioned: Bucket) -> None:
    versioned.put("x.jsonl", lines(("b", OTHER)))
    versioned.put("x.jsonl", lines(("a", WORDS), ("b", OTHER)))
    with closing(versioned.client()) as client:
        client.delete_object(Bucket=versioned.name, Key="x.jsonl")
    _, _, seen = versioned.run()
    assert residue(seen) == []
    assert WORDS.encode() not in versioned.bytes()
    assert sorted(marker for _, _, marker in versioned.versions()) == [False, True]


def test_deleting_what_is_absent_adds_no_marker(versioned: Bucket) -> None:
    versioned.put("x.jsonl", BOTH)
    matches = versioned.matches()
    with closing(versioned.client()) as client:
        for key, id, _ in versioned.versions():
            client.delete_object(Bucket=versioned.name, Key=key, VersionId=id)
    assert list(versioned.adapter().remove(removals_of(matches))) == []
    assert versioned.versions() == []


# Writing anew.


def test_a_rewrite_keeps_everything_that_is_said_of_the_object(versioned: Bucket) -> None:
    versioned.put(
        "x.jsonl",
        BOTH,
        ContentType="application/x-ndjson",
        CacheControl="no-store",
        Metadata={"made-by": "nightly"},
        StorageClass="STANDARD_IA",
        ServerSideEncryption="AES256",
        Tagging="team=cafe",
    )
    versioned.run()
    with closing(versioned.client()) as client:
        head = client.head_object(Bucket=versioned.name, Key="x.jsonl")
        tags = client.get_object_tagging(Bucket=versioned.name, Key="x.jsonl")["TagSet"]
    assert head["ContentType"] == "application/x-ndjson"
    assert head["CacheControl"] == "no-store"
    assert head["Metadata"] == {"made-by": "nightly"}
    assert head["StorageClass"] == "STANDARD_IA"
    assert head["ServerSideEncryption"] == "AES256"
    assert tags == [{"Key": "team", "Value": "cafe"}]


def test_an_object_with_nothing_to_change_is_not_written(versioned: Bucket) -> None:
    other = versioned.put("other.jsonl", lines(("b", OTHER)))
    versioned.put("x.jsonl", BOTH)
    versioned.run()
    assert [id for key, id, _ in versioned.versions() if key == "other.jsonl"] == [other]


def test_what_changed_after_the_look_is_not_overwritten(versioned: Bucket) -> None:
    versioned.put("x.jsonl", BOTH)
    matches = versioned.matches()
    newer = lines(("a", "something else by now"), ("b", OTHER))
    versioned.put("x.jsonl", newer)
    left = list(versioned.adapter().remove(removals_of(matches)))
    assert [item.problem for item in left] == [ProblemCode.CHANGED_UNDERNEATH]
    assert versioned.get("x.jsonl") == newer


def test_gzip_stays_gzip(versioned: Bucket) -> None:
    versioned.put("x.jsonl.gz", gzip.compress(BOTH), ContentEncoding="gzip")
    versioned.run()
    assert gzip.decompress(versioned.get("x.jsonl.gz")) == lines(("b", OTHER))


# Locks and dates.


@pytest.mark.parametrize("mode", ["COMPLIANCE", "GOVERNANCE"])
def test_a_locked_version_has_its_own_date_and_stops_no_other(locked: Bucket, mode: str) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=40)
    locked.put("x.jsonl", BOTH, ObjectLockMode=mode, ObjectLockRetainUntilDate=until)
    locked.put("y.jsonl", BOTH)
    _, _, seen = locked.run()
    (copy,) = residue(seen)
    assert copy.until is not None
    assert abs(copy.until - until) < timedelta(seconds=2)
    assert locked.get("y.jsonl") == lines(("b", OTHER))
    assert not copy.fixable or mode == "GOVERNANCE"


def test_governance_is_passed_by_only_when_the_manifest_says_so(locked: Bucket) -> None:
    until = datetime.now(UTC) + timedelta(days=40)
    locked.put("x.jsonl", BOTH, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until)
    assert len(residue(locked.run()[2])) == 1
    assert residue(locked.run(bypass_governance=True)[2]) == []
    assert WORDS.encode() not in locked.bytes()


def test_a_legal_hold_has_no_date(locked: Bucket) -> None:
    locked.put("x.jsonl", BOTH, ObjectLockLegalHoldStatus="ON")
    (copy,) = residue(locked.run()[2])
    assert copy.until is None
    assert WORDS.encode() in locked.bytes()


def rule(**more: Any) -> dict[str, Any]:
    return {"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, **more}]}


@pytest.mark.parametrize(
    ("lifecycle", "dated"),
    [
        (rule(NoncurrentVersionExpiration={"NoncurrentDays": 5}), True),
        (rule(Expiration={"Days": 5}), False),
        (rule(Status="Disabled", NoncurrentVersionExpiration={"NoncurrentDays": 5}), False),
        (
            rule(
                Filter={"Prefix": "elsewhere/"}, NoncurrentVersionExpiration={"NoncurrentDays": 5}
            ),
            False,
        ),
    ],
)
def test_a_lifecycle_rule_gives_a_date_only_where_it_will_act(
    versioned: Bucket, lifecycle: dict[str, Any], dated: bool
) -> None:
    versioned.put("x.jsonl", lines(("a", WORDS), ("old", "only here")))
    versioned.put("x.jsonl", BOTH)
    with closing(versioned.client()) as client:
        client.put_bucket_lifecycle_configuration(
            Bucket=versioned.name, LifecycleConfiguration=lifecycle
        )
    (copy,) = residue(versioned.run()[2])
    if not dated:
        assert copy.until is None
        return
    assert copy.until is not None
    assert copy.until.astimezone(UTC).time().isoformat() == "00:00:00"
    assert timedelta(days=5) <= copy.until - datetime.now(UTC) <= timedelta(days=6, minutes=1)


# Uploads, replicas, keys.


def test_an_unfinished_upload_to_an_affected_key_is_aborted(versioned: Bucket) -> None:
    versioned.put("x.jsonl", BOTH)
    with closing(versioned.client()) as client:
        upload = client.create_multipart_upload(Bucket=versioned.name, Key="x.jsonl")["UploadId"]
        client.upload_part(
            Bucket=versioned.name, Key="x.jsonl", UploadId=upload, PartNumber=1, Body=BOTH
        )
        versioned.run()
        assert "Uploads" not in client.list_multipart_uploads(Bucket=versioned.name)


def test_a_replica_that_is_no_site_is_not_checked(versioned: Bucket) -> None:
    versioned.put("x.jsonl", lines(("b", OTHER)))
    replication = {
        "Role": "arn:aws:iam::123456789012:role/replication",
        "Rules": [
            {
                **{"ID": "all", "Status": "Enabled", "Priority": 1, "Filter": {"Prefix": ""}},
                "DeleteMarkerReplication": {"Status": "Disabled"},
                "Destination": {"Bucket": "arn:aws:s3:::far-away"},
            }
        ],
    }
    with closing(versioned.client()) as client:
        client.put_bucket_replication(Bucket=versioned.name, ReplicationConfiguration=replication)
    assert any("far-away" in f"{gap.where} {gap.why}" for gap in gaps(versioned.look(PHRASE)))
    assert gaps(versioned.look(PHRASE, replicas_are_sites=("far-away",))) == []
    said = " ".join(line.sentence for line in versioned.adapter().check())
    assert "far-away" in said


@pytest.mark.parametrize(
    "key",
    [
        "a<b.jsonl",
        "a&b.jsonl",
        "a%3Cb.jsonl",
        "a//b.jsonl",
        "/lead.jsonl",
        "a+b c.jsonl",
        "é.jsonl",
    ],
)
def test_keys_are_opaque(versioned: Bucket, key: str) -> None:
    versioned.put(key, BOTH)
    _, left, seen = versioned.run()
    assert left == []
    assert residue(seen) == []
    assert versioned.get(key) == lines(("b", OTHER))


def test_one_user_is_not_another_whose_number_begins_alike(plain: Bucket) -> None:
    plain.put("user/1/x.jsonl", BOTH)
    plain.put("user/10/x.jsonl", BOTH)
    plain.run(prefix="user/1")
    assert plain.get("user/1/x.jsonl") == lines(("b", OTHER))
    assert plain.get("user/10/x.jsonl") == BOTH


def test_a_bucket_that_is_not_there_is_one_sentence(plain: Bucket) -> None:
    from purge.errors import Permanent

    with pytest.raises(Permanent):
        list(plain.adapter(bucket="not-made-by-anyone").find(PHRASE))


def test_what_one_request_left_does_not_count_against_another(versioned: Bucket) -> None:
    versioned.put("x.jsonl", lines(("a", WORDS), ("old", "only here")))
    versioned.put("x.jsonl", lines(("a", WORDS)))
    both = Targets([*PHRASE, Target(2, TargetKind.PHRASE, "words that stand nowhere here")])
    copies = residue(versioned.run(both, clean=False)[2])
    assert copies
    assert all(copy.keys and 2 not in copy.keys for copy in copies)


@mock_aws
def test_it_works_with_the_client_s_own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="by-decorator")
    client.put_object(Bucket="by-decorator", Key="x.jsonl", Body=BOTH)
    settings = S3Settings(
        bucket="by-decorator", format="jsonl", id="id", text=("text",), region_name="us-east-1"
    )
    site = Site("exports", Path("/nonexistent"), Action.DELETE)
    found = list(S3Adapter(site, settings).find(PHRASE))
    matches = [item for item in found if isinstance(item, Match)]
    assert any(isinstance(item, Examined) for item in found)
    assert list(S3Adapter(site, settings).remove(removals_of(matches))) == []
    assert client.get_object(Bucket="by-decorator", Key="x.jsonl")["Body"].read() == lines(
        ("b", OTHER)
    )


def test_a_record_with_a_marker_stays_in_old_versions_where_a_marker_asks(kept: Bucket) -> None:
    said = f"I wrote that {WORDS}, which is wrong.\nRETRACTS: {WORDS}"
    for _ in range(2):
        kept.put("notes.jsonl", lines(("m", said), ("b", OTHER)))
    kept.put("notes.jsonl", lines(("m", said), ("b", OTHER), ("c", "only here")))
    asked = Targets([Target(1, TargetKind.PHRASE, WORDS, from_marker=True)])
    assert kept.matches(asked)[0].carries_marker
    assert residue(kept.look(asked)) == []
    assert len(residue(kept.look(PHRASE))) == 2


def test_a_new_statement_stays_in_old_versions(kept: Bucket) -> None:
    kept.put("notes.jsonl", lines(("n", WORDS), ("b", OTHER)))
    for _ in range(2):
        kept.put("notes.jsonl", lines(("n", f"It holds: {WORDS}."), ("b", OTHER)))
    spared = Spared("n", "", frozenset({f"It holds: {WORDS}."}), frozenset({1}))
    asked = Targets(PHRASE, spared={"exports": [spared]})
    first, *_ = [version for _, version, _ in kept.versions()][::-1]
    assert [item.handle["version"] for item in residue(kept.look(asked))] == [first]


@pytest.mark.parametrize(
    "log",
    ["lake/m/_delta_log/00000.json", "lake/m/metadata/v1.metadata.json", "lake/m/.hoodie/x.commit"],
)
def test_a_file_of_a_table_is_left_to_the_table(versioned: Bucket, log: str) -> None:
    """Public fault EXP-02: older states of a table hold the row, and its log names the file."""
    table = pyarrow.table({"id": ["a", "b"], "text": [WORDS, OTHER]})
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    versioned.put("lake/m/year=2026/part-0.parquet", out.getvalue())
    versioned.put("alone/part-0.parquet", out.getvalue())
    versioned.put(log, b"{}")
    for prefix, stays in (("lake/m/year=2026/", True), ("alone/", False), ("lake/m/", True)):
        manner: dict[str, Any] = {"prefix": prefix, "format": "parquet"}
        matches = versioned.matches(**manner)
        assert len(matches) == 1
        left = list(versioned.adapter(**manner).remove(removals_of(matches)))
        assert [item.problem for item in left] == [ProblemCode.UNSUPPORTED] * stays
    assert versioned.get("lake/m/year=2026/part-0.parquet") == out.getvalue()
    rest = pyarrow.parquet.read_table(io.BytesIO(versioned.get("alone/part-0.parquet")))
    assert rest["id"].to_pylist() == ["b"]
