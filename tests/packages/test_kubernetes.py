"""The manifests of contrib/kubernetes: valid, consistent, and run as written in the root of the container."""

import contextlib
import os
import pathlib
import random
import subprocess

import kubernetes_validate
import pytest
import yaml

import filesystems
import images
from commands import HANG, ROOT, blkhash, blksum_path

FOLDER = ROOT / "contrib/kubernetes"
JOBS = ["block", "filesystem", "merge", "verify"]
VERSIONS = ["1.33", "1.37"]

# Not among the schemas of Kubernetes, since the types belong to a controller and of kustomize.
CUSTOM = {"VolumeSnapshot", "Kustomization", "Component"}

# The user of the pods, which `runAsUser` and the Containerfile say.
USER = 65532

MIB = 1 << 20
BLOCKS_IN_A_PAGE = 128
BLOCK = 64 << 10


def documents(name):
    return [document for document in yaml.safe_load_all((FOLDER / name).read_text()) if document]


def job(name):
    [found] = documents(f"{name}/job.yaml")
    return found


def container(name):
    [found] = job(name)["spec"]["template"]["spec"]["containers"]
    return found


def action(name, status):
    """What the job's podFailurePolicy does about an exit status."""
    for rule in job(name)["spec"]["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        if codes and status in codes["values"]:
            assert codes["operator"] == "In" and codes["containerName"] == container(name)["name"]
            return rule["action"]
    return "Count"


def all_files():
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.yaml"))


@pytest.mark.parametrize("name", all_files())
def test_manifests_are_valid(name):
    assert documents(name)
    for document in documents(name):
        if document["kind"] in CUSTOM:
            continue
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)


def test_a_wrong_manifest_is_found():
    """Else the test above would show nothing."""
    wrong = job("block")
    wrong["spec"]["backoffLimitPerIndices"] = 4
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_manifests_fit_each_other():
    for folder in {pathlib.Path(name).parent for name in all_files()}:
        [kustomization] = documents(folder / "kustomization.yaml")
        others = sorted(path.name for path in (FOLDER / folder).glob("*.yaml") if path.name != "kustomization.yaml")
        assert sorted(kustomization.get("resources", [])) == others
        assert kustomization["kind"] == ("Kustomization" if others else "Component")
        assert kustomization.get("components", []) == (["../image"] if str(folder) in JOBS else [])
    # The jobs name the image as the component does, which says where it is pulled from.
    [component] = documents("image/kustomization.yaml")
    [image] = component["images"]
    assert {container(name)["image"] for name in JOBS} == {image["name"]}
    commands = (ROOT / "docs/use/fleet.md").read_text()
    assert f"\nbuildah push {image['newName']}\n" in commands
    for name in ["block", "filesystem", "verify"]:
        assert f"--shard=auto/{job(name)['spec']['completions']}" in container(name)["args"]
    count = job("block")["spec"]["completions"]
    assert job("filesystem")["spec"]["completions"] == count
    assert f"--shards={count}" in container("merge")["args"]
    claims = {
        document["metadata"]["name"]
        for name in ["snapshot/snapshot.yaml", "snapshot/maps.yaml"]
        for document in documents(name)
        if document["kind"] == "PersistentVolumeClaim"
    }
    for name in JOBS:
        pod = job(name)["spec"]["template"]["spec"]
        used = {volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]}
        assert used <= claims | {"disk-restored"}
        assert pod["securityContext"]["runAsUser"] == USER
        mounted = container(name).get("volumeMounts", []) + container(name).get("volumeDevices", [])
        assert {it["name"] for it in mounted} == {volume["name"] for volume in pod["volumes"]}
    containerfile = (FOLDER / "Containerfile").read_text()
    assert f"\nUSER {USER}:{USER}\n" in containerfile
    # What the tests below run in is what the image has.
    stage = containerfile.split("\nFROM scratch\n")[1].splitlines()
    assert [line for line in stage if line.startswith(("COPY", "ADD", "RUN"))] == [
        "COPY --from=build /root-fs/ /"
    ]
    programs = "target/release/blksum target/release/blkhash target/release/blkcopy"
    assert f"contrib/kubernetes/root-fs /root-fs {programs}\n" in containerfile
    assert 'ENTRYPOINT ["/usr/bin/blkhash"]' in containerfile


class Cluster:
    """Runs containers as their jobs say, one after the other: a read-only root with the volumes, no capabilities."""

    def __init__(self, folder):
        self.root = folder / "root"
        self.volumes = {"maps": folder / "maps"}
        programs = [blksum_path(), blksum_path().with_name("blkhash")]
        images.run(str(FOLDER / "root-fs"), str(self.root), *map(str, programs))
        for place in ["proc", "dev", "maps", "disk"]:
            (self.root / place).mkdir()
        (self.root / "dev/disk").touch()
        self.volumes["maps"].mkdir()
        os.chown(self.volumes["maps"], USER, USER)

    def run(self, name, index=0):
        spec = container(name)
        mounts = [(it["mountPath"], it) for it in spec.get("volumeMounts", [])]
        mounts += [(it["devicePath"], it) for it in spec.get("volumeDevices", [])]
        script = ["set -e", 'mount --bind "$ROOT" "$ROOT"', 'mount -t proc proc "$ROOT/proc"']
        for path, mount in mounts:
            script.append(f'mount --bind "{self.volumes[mount["name"]]}" "$ROOT{path}"')
            if mount.get("readOnly"):
                script.append(f'mount -o remount,ro,bind "$ROOT{path}"')
        assert spec["securityContext"]["readOnlyRootFilesystem"]
        script.append('mount -o remount,ro,bind "$ROOT"')
        script.append(f'exec chroot --userspec={USER}:{USER} --groups= "$ROOT" /usr/bin/blkhash "$@"')
        command = ["unshare", "--mount", "bash", "-c", "\n".join(script), "bash", *spec["args"]]
        environment = {"ROOT": str(self.root), "JOB_COMPLETION_INDEX": str(index), "PATH": os.environ["PATH"]}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG)

    def run_all(self, name):
        """The exit statuses of all indexes of a job, in any order."""
        indexes = list(range(job(name)["spec"]["completions"]))
        random.Random(1).shuffle(indexes)
        return {index: self.run(name, index) for index in indexes}


@pytest.fixture
def cluster(workdir):
    return Cluster(workdir)


@contextlib.contextmanager
def block_volume(cluster, path):
    """The device of a file, which the user of the pods may read, as the volume `disk`."""
    with filesystems.attached(path) as device:
        mode = os.stat(device).st_mode
        os.chmod(device, 0o644)
        cluster.volumes["disk"] = device
        try:
            yield device
        finally:
            os.chmod(device, mode)


def make_disk(path, seed=1):
    """More pages than shards, of which some are empty."""
    source = random.Random(seed)
    page = BLOCKS_IN_A_PAGE * BLOCK
    with open(path, "wb") as file:
        for number in range(0, 90, 7):
            file.seek(number * page)
            file.write(source.randbytes(MIB))
        file.truncate(90 * page + 4096)
    os.chmod(path, 0o644)


def statuses(results):
    return {result.returncode for result in results.values()}


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("kind", ["block", "filesystem"])
def test_jobs_run_as_written(cluster, workdir, kind):
    os.mkdir("volume")
    make_disk("volume/disk.img")
    make = block_volume(cluster, "volume/disk.img") if kind == "block" else contextlib.nullcontext()
    cluster.volumes["disk"] = workdir / "volume"
    with make:
        results = cluster.run_all(kind)
        assert statuses(results) == {0}, results
        # Again: everything is there.
        assert statuses(cluster.run_all(kind)) == {0}
    merged = cluster.run("merge")
    assert merged.returncode == 0, merged
    assert blkhash("map", "create", "-o", "one.blkmap", "volume/disk.img").returncode == 0
    ids = [blkhash("map", "show", "--id", name).stdout for name in ["one.blkmap", "maps/disk.blkmap"]]
    assert ids[0] == ids[1] and ids[0]


@pytest.mark.root
def test_what_fails(cluster, workdir):
    """Each exit status, and what the policy of the job makes of it."""
    os.mkdir("volume")
    cluster.volumes["disk"] = workdir / "volume"
    make_disk("volume/disk.img")
    assert cluster.run("filesystem", 0).returncode == 0
    # A shard is missing.
    merged = cluster.run("merge")
    assert merged.returncode == 1 and merged.stderr.startswith("blkhash: missing shards: 2/40, 3/40"), merged
    assert action("merge", 1) == "FailJob"
    # The disk cannot be read.
    os.rename("volume/disk.img", "volume/other")
    failed = cluster.run("filesystem", 1)
    assert failed.returncode == 2 and "/disk/disk.img: No such file" in failed.stderr, failed
    assert action("filesystem", 2) == action("block", 2) == "Count"
    # The disk is not the one that this part began with.
    make_disk("volume/disk.img", seed=2)
    failed = cluster.run("filesystem", 0)
    assert failed.returncode == 3 and "is not the map of the image as it is now" in failed.stderr, failed
    assert action("filesystem", 3) == action("block", 3) == "FailJob"
    # Parts of two disks do not belong together.
    assert cluster.run("filesystem", 1).returncode == 0
    merged = cluster.run("merge")
    assert merged.returncode == 3 and "is of another state of the image" in merged.stderr, merged
    assert action("merge", 3) == "FailJob"


@pytest.mark.slow
@pytest.mark.root
def test_a_restored_disk_is_verified(cluster, workdir):
    make_disk("disk.img")
    assert blkhash("map", "create", "-o", "maps/disk.blkmap", "disk.img").returncode == 0
    with block_volume(cluster, "disk.img"):
        results = cluster.run_all("verify")
        assert statuses(results) == {0}, results
    page = BLOCKS_IN_A_PAGE * BLOCK
    with open("disk.img", "r+b") as file:
        file.seek(45 * page + 5)
        file.write(b"x")
    with block_volume(cluster, "disk.img"):
        results = cluster.run_all("verify")
    wrong = {index: result for index, result in results.items() if result.returncode}
    # 91 pages in 40 parts: the one with index 20 begins with page 91 * 20 / 40.
    assert list(wrong) == [20] and wrong[20].returncode == 1
    assert f"{45 * page}" in wrong[20].stdout
    assert action("verify", 1) == "FailIndex"


@pytest.mark.root
def test_pods_have_no_capabilities_and_no_shell(cluster):
    found = {str(path.relative_to(cluster.root)) for path in cluster.root.rglob("*") if path.is_file()}
    programs = {"usr/bin/blksum", "usr/bin/blkhash", "dev/disk"}
    libraries = found - programs
    assert programs <= found and all(".so" in name for name in libraries), found
    assert len(libraries) <= 5
