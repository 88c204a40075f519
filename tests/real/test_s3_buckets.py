"""What a bucket's configuration and its keys mean for what is looked at, kept and said."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Examined, Site
from purge.errors import Permanent
from purge.state import ProblemCode
from purge_adapters._s3_settings import S3Settings
from purge_adapters.s3 import S3Adapter
from tests.support import s3_servers
from tests.support.s3_buckets import BOTH, OTHER, PHRASE, WORDS, Bucket, gaps, lines, residue


@pytest.fixture
def plain() -> Bucket:
    server = s3_servers.moto()
    return Bucket(server, server.bucket())


@pytest.fixture
def versioned() -> Bucket:
    server = s3_servers.moto()
    return Bucket(server, server.bucket(versioned=True))


@pytest.fixture
def real() -> Bucket:
    """A bucket where moto forgets a part of what it was told (5.2.5)."""
    server = s3_servers.seaweed()
    return Bucket(server, server.bucket(versioned=True))


def answering(bucket: Bucket, operation: str, **more: Any) -> S3Adapter:
    """Return an adapter whose server says what only Amazon's own does: none here keeps it."""
    adapter = bucket.adapter()

    def add(parsed: dict[str, Any], **_: Any) -> None:
        parsed.update(more)

    adapter._store.client.meta.events.register(f"after-call.s3.{operation}", add)
    return adapter


def said(bucket: Bucket, **settings: Any) -> str:
    return "\n".join(
        f"{'' if line.ok else 'FAULT '}{line.sentence}"
        for line in bucket.adapter(**settings).check()
    )


def test_check_says_what_the_bucket_keeps() -> None:
    server = s3_servers.moto()
    locked = Bucket(server, server.bucket(locked=True))
    locked.put("x.jsonl", BOTH)
    locked.put("x.jsonl", BOTH)
    with closing(locked.client()) as client:
        client.put_bucket_lifecycle_configuration(
            Bucket=locked.name,
            LifecycleConfiguration={
                "Rules": [
                    {
                        "ID": "r",
                        "Status": "Enabled",
                        "Filter": {"Prefix": ""},
                        "NoncurrentVersionExpiration": {"NoncurrentDays": 9},
                        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3},
                    }
                ]
            },
        )
    text = said(locked)
    for words in ("keeps versions", "Object Lock is on", "9 days", "3 days", "Objects: 1, old"):
        assert words in text
    assert "FAULT" not in text


def test_check_says_that_versioning_is_off_or_suspended(plain: Bucket, versioned: Bucket) -> None:
    assert "keeps no versions" in said(plain)
    with closing(versioned.client()) as client:
        client.put_bucket_versioning(
            Bucket=versioned.name, VersioningConfiguration={"Status": "Suspended"}
        )
    assert "suspended" in said(versioned)


def test_with_mfa_delete_nothing_is_promised(versioned: Bucket) -> None:
    versioned.put("x.jsonl", BOTH)
    versioned.put("x.jsonl", lines(("b", OTHER)))
    assert residue(versioned.look(PHRASE))[0].fixable
    adapter = answering(versioned, "GetBucketVersioning", MFADelete="Enabled")
    assert any(not it.ok and "MFA Delete is on" in it.sentence for it in adapter.check())
    (copy,) = residue(list(adapter.residue(PHRASE)))
    assert not copy.fixable
    assert "MFA" in copy.why


def test_a_rewrite_keeps_the_key_of_encryption_and_who_may_read(versioned: Bucket) -> None:
    versioned.put("x.jsonl", BOTH, ServerSideEncryption="aws:kms", SSEKMSKeyId="alias/exports")
    with closing(versioned.client()) as client:
        where = {"Bucket": versioned.name, "Key": "x.jsonl"}
        client.put_object_acl(**where, ACL="public-read")
        grants = client.get_object_acl(**where)["Grants"]
        head = client.head_object(**where)
        versioned.run()
        after = client.head_object(**where)
        assert after["VersionId"] != head["VersionId"]
        key = lambda grant: str(sorted(grant["Grantee"].items())) + grant["Permission"]  # noqa: E731
        assert sorted(client.get_object_acl(**where)["Grants"], key=key) == sorted(grants, key=key)
    assert len(grants) == 2
    assert after["ServerSideEncryption"] == "aws:kms"
    assert after["SSEKMSKeyId"] == head["SSEKMSKeyId"]


@pytest.mark.parametrize(("newest", "dated"), [(1, True), (2, False)])
def test_a_rule_that_keeps_some_old_versions_gives_these_no_date(
    real: Bucket, newest: int, dated: bool
) -> None:
    real.put("x.jsonl", lines(("a", WORDS), ("old", "only here")))
    real.put("x.jsonl", lines(("b", "in between")))
    real.put("x.jsonl", lines(("b", OTHER)))
    with closing(real.client()) as client:
        client.put_bucket_lifecycle_configuration(
            Bucket=real.name,
            LifecycleConfiguration={
                "Rules": [
                    {
                        "ID": "r",
                        "Status": "Enabled",
                        "Filter": {"Prefix": ""},
                        "NoncurrentVersionExpiration": {
                            "NoncurrentDays": 5,
                            "NewerNoncurrentVersions": newest,
                        },
                    }
                ]
            },
        )
    (copy,) = residue(real.run()[2])
    assert (copy.until is not None) == dated


def test_an_upload_has_the_date_of_the_rule_that_ends_it(real: Bucket) -> None:
    real.put("x.jsonl", BOTH)
    with closing(real.client()) as client:
        client.create_multipart_upload(Bucket=real.name, Key="x.jsonl")
        client.put_bucket_lifecycle_configuration(
            Bucket=real.name,
            LifecycleConfiguration={
                "Rules": [
                    {
                        "ID": "r",
                        "Status": "Enabled",
                        "Filter": {"Prefix": ""},
                        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3},
                    }
                ]
            },
        )
    copies = residue(real.run(clean=False)[2])
    (until,) = [copy.until for copy in copies if copy.handle["kind"] == "upload"]
    assert until is not None
    assert until.astimezone(UTC).time().isoformat() == "00:00:00"
    ahead = until - datetime.now(UTC)
    assert timedelta(days=2, hours=23) <= ahead <= timedelta(days=4)


def test_a_rule_of_replication_for_other_keys_concerns_nobody(versioned: Bucket) -> None:
    versioned.put("exports/x.jsonl", lines(("b", OTHER)))
    with closing(versioned.client()) as client:
        client.put_bucket_replication(
            Bucket=versioned.name,
            ReplicationConfiguration={
                "Role": "arn:aws:iam::123456789012:role/replication",
                "Rules": [
                    {
                        "Status": "Enabled",
                        "Priority": 1,
                        "Filter": {"Prefix": ""},
                        "DeleteMarkerReplication": {"Status": "Disabled"},
                        "Destination": {"Bucket": "arn:aws:s3:::far-away"},
                    }
                ],
            },
        )

    # moto 5.2.5 forgets the prefix.
    def destinations(**chosen: Any) -> int:
        rule = {"Status": "Enabled", "Destination": {"Bucket": "arn:aws:s3:::far-away"}, **chosen}
        more = {"ReplicationConfiguration": {"Rules": [rule]}}
        adapter = answering(versioned, "GetBucketReplication", **more)
        return len(gaps(list(adapter.residue(PHRASE))))

    assert destinations(Filter={"Prefix": "pictures/"}) == 1  # the site is all of the bucket
    assert destinations(Filter={"Prefix": "pictures/"}, Status="Disabled") == 0
    versioned.within = {"prefix": "exports/"}
    assert destinations(Filter={"Prefix": "pictures/"}) == 0
    assert destinations(Filter={"And": {"Prefix": "exp"}}) == 1
    assert destinations(Prefix="exports/old/") == 1


@pytest.mark.parametrize("key", ["a\tb.jsonl", " lead.jsonl", "..a/.b.jsonl", "a\\b.jsonl"])
def test_keys_that_look_like_something_else(versioned: Bucket, key: str) -> None:
    versioned.put(key, BOTH)
    versioned.put(key, BOTH)
    _, left, seen = versioned.run()
    assert left == []
    assert residue(seen) == []
    assert gaps(seen) == []
    assert versioned.get(key) == lines(("b", OTHER))
    assert len(versioned.versions()) == 1


def test_versions_that_are_listed_under_another_key_are_not_passed_over(real: Bucket) -> None:
    # SeaweedFS 4.48 lists them with U+FFFD for the control character; moto 5.2.5 breaks off.
    real.put("a\x01b.jsonl", BOTH)
    real.put("a\x01b.jsonl", lines(("b", OTHER)))
    assert [gap.problem for gap in gaps(real.look(PHRASE))] == [ProblemCode.CHANGED_UNDERNEATH]


def test_a_listing_is_read_to_its_end(versioned: Bucket) -> None:
    with closing(versioned.client()) as client:
        for number in range(7):
            client.put_object(Bucket=versioned.name, Key=f"{number}", Body=BOTH)
            client.put_object(Bucket=versioned.name, Key=f"{number}", Body=BOTH)
    adapter = versioned.adapter()

    def in_small_pages(params: dict[str, Any], **_: Any) -> None:
        params["MaxKeys"] = 3  # a page may end between the versions of one key

    for operation in ("ListObjectsV2", "ListObjectVersions"):
        adapter._store.client.meta.events.register(
            f"before-parameter-build.s3.{operation}", in_small_pages
        )
    assert len(list(adapter._store.objects())) == 7
    assert [len(history) for history in adapter._store.histories()] == [2] * 7


def test_every_request_says_who_has_to_own_the_bucket(versioned: Bucket) -> None:
    versioned.put("x.jsonl", BOTH)
    owners: list[str | None] = []
    adapter = versioned.adapter(expected_bucket_owner="123456789012")

    def note(request: Any, **_: Any) -> None:
        owners.append(request.headers.get("x-amz-expected-bucket-owner"))
        assert f"/{versioned.name}" in request.url  # the bucket stands in the path

    adapter._store.client.meta.events.register("before-send.s3", note)
    list(adapter.find(PHRASE))
    list(adapter.residue(PHRASE))
    list(adapter.check())
    assert len(owners) > 5
    assert {*map(bytes, owners)} == {b"123456789012"}  # type: ignore[arg-type]  # none is missing


def test_a_profile_gives_region_and_credentials(
    plain: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.put("x.jsonl", BOTH)
    (tmp_path / "credentials").write_text(
        "[cafe]\naws_access_key_id = from-the-profile\naws_secret_access_key = secret\n"
    )
    (tmp_path / "config").write_text("[profile cafe]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    common: dict[str, Any] = {"bucket": plain.name, "endpoint_url": plain.server.url}
    site = Site("exports", Path("/nonexistent"))
    adapter = S3Adapter(site, S3Settings(**common, format="jsonl", profile_name="cafe"))
    signed: list[str] = []

    def note(request: Any, **_: Any) -> None:
        signed.append(str(request.headers["Authorization"]))

    adapter._store.client.meta.events.register("before-send.s3", note)
    assert any(isinstance(item, Examined) for item in adapter.find(PHRASE))
    assert "from-the-profile" in signed[0]
    assert "eu-central-1" in signed[0]
    with pytest.raises(Permanent) as raised:
        list(S3Adapter(site, S3Settings(**common, profile_name="no-such")).find(PHRASE))
    assert raised.value.problem == ProblemCode.NO_PERMISSION
