"""The workflows run what a commit names, and a job that may write runs nothing of the repository or its dependencies."""

import re

import pytest
import yaml

from conftest import ROOT

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


def test_the_release_is_built_in_a_container_that_a_digest_names():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert re.fullmatch(r"rust:[\d.]+-bookworm@sha256:[0-9a-f]{64}", jobs["build"]["container"]["image"])
