"""The workflows run what a commit names, and a job that may write runs nothing of the repository or its dependencies."""

import pathlib
import re
import subprocess
import sys

import pytest
import yaml

from commands import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def may_write(permissions):
    return permissions == "write-all" or isinstance(permissions, dict) and "write" in permissions.values()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    uses = re.findall(r"^\s*(?:- )?uses: (.*)$", path.read_text(), re.MULTILINE)
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", it) for it in uses), uses


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_may_write_runs_no_build(path):
    workflow = yaml.safe_load(path.read_text())
    assert "permissions" in workflow and not may_write(workflow["permissions"])
    for name, job in workflow["jobs"].items():
        if may_write(job.get("permissions", {})):
            assert "container" not in job, name
            assert not any("checkout" in step.get("uses", "") for step in job["steps"]), name
            assert not any(re.search(r"\b(make|cargo|pip)\b", step.get("run", "")) for step in job["steps"]), name


def test_the_release_has_such_a_job():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert {name for name, job in jobs.items() if may_write(job.get("permissions", {}))} == {"attest", "draft"}


def test_containers_are_the_one_of_the_release_and_a_digest_names_it():
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["build"]["container"]["image"]
    assert re.fullmatch(r"rust:[\d.]+-bookworm@sha256:[0-9a-f]{64}", release)
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    images = [job["container"]["image"] for job in jobs if "container" in job]
    assert len(images) == 3 and set(images) == {release}


def test_what_is_attested_comes_from_the_job_that_builds():
    """The job that attests takes what the build uploaded, adds nothing but the attestation, and hands it on."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    uploads = [step["with"]["name"] for step in jobs["build"]["steps"] if "upload-artifact" in step.get("uses", "")]
    steps = jobs["attest"]["steps"]
    downloads = [step["with"]["name"] for step in steps if "download-artifact" in step.get("uses", "")]
    assert jobs["attest"]["needs"] == "build" and downloads == uploads == ["packages"]
    assert [step["run"] for step in steps if "run" in step] == ['cp "$BUNDLE" release/provenance.sigstore.json']


def test_zizmor_finds_nothing():
    zizmor = pathlib.Path(sys.executable).with_name("zizmor")
    done = subprocess.run(
        [zizmor, "--offline", "--persona=pedantic", "--no-progress", "--color=never", ROOT / ".github"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout
