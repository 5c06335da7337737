"""S3: objects of a real server, uploaded by boto3, with credentials from every place, and the errors of the server."""

import contextlib
import hashlib
import random
import re
import time

import pytest

import servers as nbd
from commands import HANG
from s3_server import ACCESS_KEY, MIN_PART, SECRET_KEY, S3Server

KIB = 1 << 10
MIB = 1 << 20

REGION = "eu-central-7"

# The fields of the log of S3 servers that a test looks at.
LOG_LINE = re.compile(
    r"\S+ \S+ \[[^]]*\] \S+ (?P<requester>\S+) \S+ (?P<operation>\S+) (?P<key>\S+) \S+ (?P<status>\d+) "
    r".* (?P<kind>SigV4|-) \S+ AuthHeader "
)

# Keys that a URL of HTTP would not have as they are.
KEYS = [
    "disk.img",
    "a folder/with spaces/disk 1.img",
    "plus+and%20percent%.img",
    "dates/2026-01-31T00:00:00,x=y&z;a@b$c!d'e(f)*.img",
    "ünïcödé/日本語/💾.img",
    "question?versionId=1#fragment.img",
    "~tilde/under_score/dot.dot/-dash.img",
    "[brackets]/{braces}/<angles>/`ticks`/^caret|pipe.img",
]


@pytest.fixture(scope="module")
def servers():
    started = nbd.Servers()
    with contextlib.closing(started):
        yield started


@pytest.fixture(scope="module")
def server(servers, tmp_path_factory):
    """A server in a region that is not the default one, with a private and a public bucket."""
    started = S3Server(servers, tmp_path_factory.mktemp("s3"), REGION)
    started.make_bucket("private")
    started.make_bucket("public", public=True)
    return started


@pytest.fixture
def run(blksum, server, tmp_path):
    """Runs blksum on a URL, without credentials but those in `variables` and the folder tmp_path."""

    def run(url, *args, endpoint=server.url, region=REGION, bytes_option=True, **variables):
        options = ["--bytes", *args] if bytes_option else [*args]
        if endpoint:
            options += ["--s3-endpoint", endpoint]
        if region:
            options += ["--s3-region", region]
        environment = server.environment(tmp_path, **variables)
        return blksum(*options, url, env=environment)

    return run


@pytest.fixture
def digest(run):
    def digest(*args, **kwargs):
        result = run(*args, **kwargs)
        assert result.returncode == 0, result
        return result.stdout.lstrip(b"\\").split(b" ", 1)[0].decode()

    return digest


@pytest.fixture
def fails(run):
    """Runs blksum, which fails. Returns its message, which is one line and holds no secret."""

    def fails(*args, **kwargs):
        result = run(*args, **kwargs)
        assert result.returncode != 0 and result.stdout == b"", result
        message = result.stderr.decode()
        assert message.count("\n") == 1, message
        assert SECRET_KEY not in message and ACCESS_KEY not in message, message
        return message

    return fails


def content(size, seed=0):
    return random.Random(seed).randbytes(size)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("key", KEYS)
def test_keys(server, digest, key):
    data = content(100_001, key)
    server.put("private", key, data)
    assert digest(f"s3://private/{key}", **server.keys()) == sha256(data)


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 9 * MIB + 7])
def test_sizes(server, digest, size):
    data = content(size, size)
    server.put("private", f"size-{size}", data)
    assert digest(f"s3://private/size-{size}", **server.keys()) == sha256(data)


def test_an_object_of_parts(server, digest):
    parts = [content(MIN_PART, 1), content(MIN_PART + 4321, 2), content(777, 3)]
    server.put_parts("private", "parts.img", parts, "CRC32")
    assert digest("s3://private/parts.img", **server.keys()) == sha256(b"".join(parts))


def test_a_public_object_needs_no_credentials(server, digest, fails):
    data = content(200_000)
    server.put("public", "open.img", data)
    assert digest("s3://public/open.img") == sha256(data)
    server.put("private", "closed.img", data)
    message = fails("s3://private/closed.img")
    assert "AWS_ACCESS_KEY_ID" in message, message


def write_profiles(home, endpoint):
    (home / ".aws").mkdir()
    keys = f"aws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    wrong = "aws_access_key_id = AKIAWRONG\naws_secret_access_key = wrong\n"
    (home / ".aws/credentials").write_text(f"[default]\n{wrong}\n[owner]\n{keys}")
    (home / ".aws/config").write_text(
        f"[profile owner]\nregion = {REGION}\nservices = here\n[services here]\ns3 =\n  endpoint_url = {endpoint}\n"
        f"[profile program]\ncredential_process = /bin/touch {home}/ran\n"
        "[profile browser]\nsso_session = x\nsso_account_id = 1\n"
    )


def test_profiles(server, tmp_path, digest, fails):
    data = content(50_000)
    server.put("private", "profile.img", data)
    write_profiles(tmp_path, server.url)
    url = "s3://private/profile.img"
    configured = {"endpoint": None, "region": None}
    assert digest(url, "--s3-profile", "owner", **configured) == sha256(data)
    assert digest(url, AWS_PROFILE="owner", **configured) == sha256(data)
    # The environment comes before a profile that is not an option.
    assert digest(url, AWS_PROFILE="default", **server.keys()) == sha256(data)
    wrong = {"AWS_ACCESS_KEY_ID": "AKIAWRONG", "AWS_SECRET_ACCESS_KEY": "wrong"}
    assert digest(url, "--s3-profile", "owner", **configured, **wrong) == sha256(data)
    assert "does not know the access key" in fails(url)
    assert "no profile 'nobody'" in fails(url, "--s3-profile", "nobody")


def test_files_of_profiles_elsewhere(server, tmp_path, digest):
    data = content(50_000)
    server.put("private", "elsewhere.img", data)
    write_profiles(tmp_path, server.url)
    (tmp_path / ".aws").rename(tmp_path / "aws")
    files = {"AWS_CONFIG_FILE": f"{tmp_path}/aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/aws/credentials"}
    assert digest("s3://private/elsewhere.img", "--s3-profile", "owner", endpoint=None, region=None, **files) == sha256(data)


@pytest.mark.parametrize("profile, name", [("program", "credential_process"), ("browser", "sso_session")])
def test_no_program_is_run_for_credentials(server, tmp_path, fails, profile, name):
    write_profiles(tmp_path, server.url)
    message = fails("s3://private/disk.img", "--s3-profile", profile)
    assert f"'{name}'" in message and "configure export-credentials" in message, message
    assert not (tmp_path / "ran").exists()


def test_endpoints_and_regions_of_the_environment(server, digest):
    data = content(50_000)
    server.put("private", "environment.img", data)
    url, none = "s3://private/environment.img", {"endpoint": None, "region": None}
    for endpoint in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]:
        for region in ["AWS_REGION", "AWS_DEFAULT_REGION"]:
            variables = {endpoint: server.url + "/", region: REGION}
            assert digest(url, **none, **variables, **server.keys()) == sha256(data)
    overridden = {"AWS_ENDPOINT_URL": "http://localhost:1", "AWS_REGION": "us-west-9"}
    assert digest(url, **overridden, **server.keys()) == sha256(data)


def test_the_region_that_the_server_names(server, digest):
    data = content(2 * MIB)
    server.put("private", "region.img", data)
    assert digest("s3://private/region.img", region=None, **server.keys()) == sha256(data)
    assert digest("s3://private/region.img", region="us-west-2", **server.keys()) == sha256(data)


def test_errors_of_the_server(server, fails):
    server.put("private", "disk.img", content(1000))
    url = "s3://private/disk.img"
    wrong_secret = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": "wrong"}
    assert "the secret key does not belong to the access key" in fails(url, **wrong_secret)
    wrong_key = {"AWS_ACCESS_KEY_ID": "AKIAWRONG", "AWS_SECRET_ACCESS_KEY": "wrong"}
    assert "does not know the access key" in fails(url, **wrong_key)
    assert "no such object" in fails("s3://private/missing.img", **server.keys())
    assert "no such bucket" in fails("s3://missing-bucket/disk.img", **server.keys())
    half = {"AWS_ACCESS_KEY_ID": ACCESS_KEY}
    assert "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in fails(url, **half)


def test_urls_and_endpoints_that_are_not_valid(server, fails):
    for url in ["s3://", "s3://private", "s3://private/", "s3://a b/c"]:
        fails(url, **server.keys())
    for endpoint in ["localhost:9000", "ftp://localhost", "http://user:secret@localhost", "http://localhost/?a=b"]:
        message = fails("s3://private/disk.img", endpoint=endpoint, **server.keys())
        assert "endpoint" in message and "secret@" not in message, message


def test_a_url_that_boto3_signed(server, blksum, tmp_path):
    data = content(3 * MIB)
    server.put("private", "signed 1.img", data)
    place = {"Bucket": "private", "Key": "signed 1.img"}
    url = server.client.generate_presigned_url("get_object", Params=place, ExpiresIn=600)
    result = blksum("--bytes", url, env=server.environment(tmp_path))
    assert result.returncode == 0, result
    assert result.stdout.split(b" ")[0].decode() == sha256(data)
    # The line has the name as it was given, and messages hide the signature.
    assert result.stdout.endswith(f"  {url}\n".encode()), result
    result = blksum("--bytes", url + "0", env=server.environment(tmp_path))
    assert result.returncode == 1 and b"signed%201.img" in result.stderr, result
    assert url.rsplit("=", 1)[1].encode() not in result.stderr, result


def test_tls(servers, blksum, tmp_path):
    certificates = nbd.make_certificates(tmp_path / "pki")
    server = S3Server(servers, tmp_path / "s3", certificates=certificates)
    server.make_bucket("private")
    data = content(2 * MIB + 5)
    server.put("private", "tls.img", data)
    environment = server.environment(tmp_path, **server.keys())
    command = ["--bytes", "--s3-endpoint", server.url, "s3://private/tls.img"]
    trusted = blksum("--tls-ca", str(certificates / "ca-cert.pem"), *command, env=environment)
    assert trusted.stdout.split(b" ")[0].decode() == sha256(data), trusted
    untrusted = blksum(*command, env=environment)
    assert untrusted.returncode != 0 and b"certificate" in untrusted.stderr, untrusted


def test_every_request_is_signed_and_none_is_wasted(server, digest):
    """The log of the server has only requests that succeeded, all of the owner of the key."""
    data = content(3 * MIB)
    server.put("private", "logged.img", data)
    started = server.log.stat().st_size
    assert digest("s3://private/logged.img", **server.keys()) == sha256(data)
    for fields in logged(server, started, "logged.img"):
        assert fields["operation"] == "s3_GetObject" and fields["requester"] == ACCESS_KEY, fields
        assert fields["status"] == "200" and fields["kind"] == "SigV4", fields


def logged(server, start, key):
    """Returns the requests for a key that the server logs from an offset on, when there are any. It logs a request after
    its answer."""
    deadline = time.monotonic() + HANG
    while True:
        with open(server.log, "rb") as log:
            log.seek(start)
            text = log.read().decode()
        lines = [LOG_LINE.match(line) for line in text.splitlines()]
        found = [line.groupdict() for line in lines if line and line["key"] == key]
        if found:
            return found
        assert time.monotonic() < deadline, text
        time.sleep(0.01)


@pytest.mark.parametrize("algorithm", ["SHA256", "SHA1", "CRC32", None])
def test_expects_what_the_server_stores(server, run, algorithm):
    data = content(3 * MIB + 5, 8)
    named = {"ChecksumAlgorithm": algorithm} if algorithm else {}
    server.put("private", "stored.img", data, **named)
    result = run("s3://private/stored.img", "--expect=stored", bytes_option=False, **server.keys())
    assert result.returncode == 0 and b": OK" in result.stdout, result


@pytest.mark.parametrize("algorithm", ["SHA256", "CRC32", None])
def test_expects_what_the_server_stores_of_parts(server, run, algorithm):
    parts = [content(8 * MIB, 4), content(8 * MIB, 5), content(123, 6)]
    server.put_parts("private", "stored-parts.img", parts, algorithm)
    url = "s3://private/stored-parts.img"
    result = run(url, "--expect=stored", bytes_option=False, **server.keys())
    assert result.returncode == 0 and b": OK" in result.stdout, result


def test_content_that_is_not_what_the_server_stores(server, run):
    server.put("private", "damaged.img", content(2 * MIB, 7), ChecksumAlgorithm="SHA256")
    stored = server.folder / "private/damaged.img"
    changed = bytearray(stored.read_bytes())
    changed[MIB + 17] ^= 1
    stored.write_bytes(changed)
    url = "s3://private/damaged.img"
    result = run(url, "--expect=stored", bytes_option=False, **server.keys())
    assert result.returncode == 1 and b": FAILED" in result.stdout, result


def test_stored_is_of_objects(run, tmp_path, server):
    (tmp_path / "local.img").write_bytes(b"x" * 512)
    result = run(tmp_path / "local.img", "--expect=stored", bytes_option=False, **server.keys())
    assert result.returncode == 1 and b"is no object on a server" in result.stderr, result
