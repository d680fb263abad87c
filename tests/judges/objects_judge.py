"""Records in a store, judged by moto's server, which checks signatures by botocore, and by what boto3 puts there."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from typing import Any, ClassVar

import judging

judging.require("moto", "boto3", "flask", "flask_cors", "requests")

import boto3  # noqa: E402
import requests  # noqa: E402
from boto3.s3.transfer import TransferConfig  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

REGION = "eu-west-3"
ALL_MAY_READ = {
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
    "Version": "2012-10-17",
}


def lines(number: int, count: int) -> bytes:
    return b"".join(json.dumps({"a": f"{number} {i}"}).encode() + b"\n" for i in range(count))


def texts(path: str) -> list[str]:
    """The field `a` of all records, as Trireme reads them."""
    made = judging.call("fields", {}, path=path, field="a")
    bytes_of, found, at = bytes(made["bytes"]), [], 0
    for size in made["sizes"]:
        found.append(bytes_of[at : at + size].decode())
        at += size
    return found


class ObjectsTest(unittest.TestCase):
    """One server for all."""

    server: ClassVar[ThreadedMotoServer]
    s3: ClassVar[Any]
    url: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        for name in ("http_proxy", "HTTP_PROXY", "AWS_PROFILE"):
            os.environ.pop(name, None)
        cls.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        cls.server.start()
        host, port = cls.server.get_host_and_port()
        cls.url = f"http://{host}:{port}"
        keys = cls.make_keys()
        os.environ |= {"AWS_ENDPOINT_URL": cls.url, "AWS_REGION": REGION, **keys}
        cls.s3 = boto3.client("s3", endpoint_url=cls.url, region_name=REGION)
        cls.s3.create_bucket(
            Bucket="data", CreateBucketConfiguration={"LocationConstraint": REGION}
        )

    @classmethod
    def make_keys(cls) -> dict[str, str]:
        iam = boto3.client(
            "iam",
            endpoint_url=cls.url,
            region_name=REGION,
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        iam.create_user(UserName="u")
        iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(ALL_MAY_READ))
        key = iam.create_access_key(UserName="u")["AccessKey"]
        return {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.stop()

    def check_signatures(self, *, does: bool) -> None:
        """Moto has no signatures in links, and none of names that have to be encoded: boto3's own are refused."""
        requests.post(f"{self.url}/moto-api/reset-auth", data="0" if does else "inf", timeout=10)

    def setUp(self) -> None:
        self.check_signatures(does=True)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.environ["TRIREME_CACHE_DIR"] = folder.name

    def test_every_checksum_that_is_put(self) -> None:
        for algorithm in ("", "CRC32", "SHA1", "SHA256"):
            options = {"ChecksumAlgorithm": algorithm} if algorithm else {}
            self.s3.put_object(
                Bucket="data", Key=f"x{algorithm}.jsonl", Body=lines(1, 2), **options
            )
            with self.subTest(algorithm=algorithm):
                self.assertEqual(texts(f"s3://data/x{algorithm}.jsonl"), ["1 0", "1 1"])

    def test_an_object_of_several_parts(self) -> None:
        body = lines(2, 400_000)
        with tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
            self.s3.upload_file(file.name, "data", "parts/x.jsonl", Config=parts)
        self.assertIn("-", self.s3.head_object(Bucket="data", Key="parts/x.jsonl")["ETag"])
        self.assertEqual(texts("s3://data/parts/x.jsonl")[-1], "2 399999")

    def test_a_listing_of_two_pages_with_odd_names(self) -> None:
        self.check_signatures(does=False)
        names = [f"many/{i:04}.jsonl" for i in range(1000)] + ["many/a b+c%20&=~ü.jsonl"]
        for number, name in enumerate(names):
            self.s3.put_object(Bucket="data", Key=name, Body=lines(number, 1))
        self.s3.put_object(Bucket="data", Key="many/below/x.jsonl", Body=b"{}\n")
        self.assertEqual(texts("s3://data/many"), [f"{number} 0" for number in range(len(names))])

    def test_a_link_that_is_signed_for_get(self) -> None:
        self.check_signatures(does=False)
        self.s3.put_object(Bucket="data", Key="link.jsonl", Body=lines(3, 1))
        link = self.s3.generate_presigned_url(
            "get_object", Params={"Bucket": "data", "Key": "link.jsonl"}
        )
        self.assertEqual(texts(link), ["3 0"])

    def test_wrong_keys_are_refused(self) -> None:
        self.s3.put_object(Bucket="data", Key="x.jsonl", Body=lines(1, 1))
        secret = os.environ["AWS_SECRET_ACCESS_KEY"]
        os.environ["AWS_SECRET_ACCESS_KEY"] = "wrong"
        self.addCleanup(os.environ.__setitem__, "AWS_SECRET_ACCESS_KEY", secret)
        with self.assertRaisesRegex(
            judging.RefusedError, "s3://data/x.jsonl.*403.*AWS_ACCESS_KEY_ID"
        ):
            texts("s3://data/x.jsonl")


if __name__ == "__main__":
    judging.main()
