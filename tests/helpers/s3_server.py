"""An S3 server for the tests: versitygw, which `make setup` installs, and boto3 as its independent client.

Buckets are folders beneath a folder, and what is no content is kept next to it, so that any file system will do.
"""

import functools
import json
import os
import warnings

import boto3
import botocore.config
import pytest

from commands import ROOT

PROGRAM = ROOT / ".venv/bin/versitygw"

ACCESS_KEY, SECRET_KEY = "AKIATESTS", "secret/of+the+tests"

# Smallest part of an upload, but for the last one.
MIN_PART = 5 << 20


class S3Server:
    """A server on a free port of this host, whose owner has ACCESS_KEY and SECRET_KEY."""

    def __init__(self, servers, folder, region="us-east-1", certificates=None):
        if not os.access(PROGRAM, os.X_OK):
            pytest.skip("needs versitygw: scripts/install-s3-server, for which Go is needed")
        self.region = region
        self.folder = folder / "content"
        self.log = folder / "log"
        metadata = folder / "metadata"
        self.folder.mkdir(parents=True)
        metadata.mkdir()
        options = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--region", region, "--access-log", self.log]
        if certificates is not None:
            options += ["--cert", certificates / "server-cert.pem", "--key", certificates / "server-key.pem"]
        backend = ["posix", "--sidecar", metadata, self.folder]

        def command(port):
            return [*map(str, [PROGRAM, "--port", f"127.0.0.1:{port}", "--quiet", *options, *backend])]

        self.server = servers.start(True, command)
        scheme = "http" if certificates is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.place}"
        self.authority = certificates and certificates / "ca-cert.pem"

    @functools.cached_property
    def client(self):
        """The client of the owner."""
        return self.client_of(ACCESS_KEY, SECRET_KEY)

    def client_of(self, access_key, secret_key):
        with warnings.catch_warnings():
            # It warns of versions of Python that are old.
            warnings.simplefilter("ignore")
            return boto3.client(
                "s3",
                endpoint_url=self.url,
                region_name=self.region,
                aws_access_key_id=access_key,
                aws_secret_access_key=secret_key,
                verify=str(self.authority) if self.authority else None,
                config=botocore.config.Config(s3={"addressing_style": "path"}),
            )

    def make_bucket(self, bucket, public=False):
        """Makes a bucket. If it is public, everyone may read its objects."""
        self.client.create_bucket(Bucket=bucket)
        if public:
            statement = {
                "Effect": "Allow",
                "Principal": "*",
                "Action": ["s3:GetObject"],
                "Resource": [f"arn:aws:s3:::{bucket}/*"],
            }
            policy = {"Version": "2012-10-17", "Statement": [statement]}
            self.client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))

    def put(self, bucket, key, content, **parameters):
        """Uploads an object in one part."""
        return self.client.put_object(Bucket=bucket, Key=key, Body=content, **parameters)

    def put_parts(self, bucket, key, parts, algorithm=None, kind=None):
        """Uploads an object in several parts, with checksums of an algorithm for each or for all."""
        wanted = {"ChecksumAlgorithm": algorithm} if algorithm else {}
        created = wanted | ({"ChecksumType": kind} if kind else {})
        place = {"Bucket": bucket, "Key": key}
        upload = place | {"UploadId": self.client.create_multipart_upload(**place, **created)["UploadId"]}
        done = []
        for number, content in enumerate(parts, 1):
            answer = self.client.upload_part(**upload, **wanted, PartNumber=number, Body=content)
            names = [it for it in answer if it == "ETag" or it in {f"Checksum{algorithm}"}]
            done.append({"PartNumber": number} | {name: answer[name] for name in names})
        return self.client.complete_multipart_upload(**upload, MultipartUpload={"Parts": done})

    def environment(self, home, **variables):
        """Returns the environment of a program that finds credentials only in `variables` and in the folder `home`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return kept | {"HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true"} | variables

    def keys(self):
        """Returns the variables with the credentials of the owner."""
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
