"""Tests here and in python/tests that fail on a build with `--cfg blkhash_portable`, and the promise of docs/use/platforms.md that is
weaker there.

A test that passes there although it is listed is a failure, so that the list stays true.
"""

import os

import pytest

# Promise: tests, as `file` or `file::test`, or `file::test[parameters]`.
WEAKER = {
    "sandbox": [
        "test_hints.py::test_a_program_that_the_sandbox_stops_is_said",
        "test_operations.py::test_drop_ins",
        "test_operations.py::test_the_unit_runs_as_installed",
        "test_sandbox.py::test_a_backing_file_that_needs_a_program",
        "test_sandbox.py::test_calls_of_32_bits_are_the_end_of_the_server",
        "test_sandbox.py::test_check_file_that_lists_folders_opens_none",
        "test_sandbox.py::test_image_on_standard_input",
        "test_sandbox.py::test_it_holds_for_threads_that_start_later",
        "test_sandbox.py::test_it_is_in_force_while_images_are_read",
        "test_sandbox.py::test_kernels_that_lack_a_layer",
        "test_sandbox.py::test_names_of_all_kinds",
        "test_sandbox.py::test_programs_run_only_for_formats_that_need_one",
        "test_sandbox.py::test_root_connects_to_sockets_of_others",
        "test_sandbox.py::test_root_reads_a_block_device",
        "test_sandbox.py::test_root_reads_images_of_others",
        "test_sandbox.py::test_server_changes_nothing_and_connects_nowhere",
        "test_sandbox.py::test_the_uri_of_a_check_file_opens_no_files",
        "test_sandbox.py::test_users_have_no_capabilities",
        "test_sandbox.py::test_verbose_says_what_is_in_force",
    ],
    "servers": [
        "test_native.py::test_both_readers_see_the_same",
        "test_native.py::test_reader_of_a_chain",
        "test_other_formats.py::test_backing_file_of_a_qcow2[bochs]",
        "test_other_formats.py::test_backing_file_of_a_qcow2[luks]",
        "test_other_formats.py::test_image_in_use",
        "test_other_formats.py::test_luks_needs_its_secret",
        "test_other_formats.py::test_names_are_never_interpreted[100%25\\\\-luks]",
        "test_other_formats.py::test_names_are_never_interpreted[a, b: c-luks]",
        'test_other_formats.py::test_names_are_never_interpreted[it\'s "x"-luks]',
        "test_other_formats.py::test_names_are_never_interpreted[json:{}-luks]",
        "test_other_formats.py::test_names_are_never_interpreted[nbd:x-luks]",
        "test_other_formats.py::test_nothing_is_left_after_a_signal",
        "test_other_formats.py::test_nothing_is_left_after_success_and_error",
        "test_other_formats.py::test_one_content_one_checksum[bochs]",
        "test_other_formats.py::test_one_content_one_checksum[cloop]",
        "test_other_formats.py::test_qemu_opens_no_other_file",
        "test_other_formats.py::test_server_gets_a_secret_that_it_cannot_change",
        "test_other_formats.py::test_server_is_confined",
        "test_other_formats.py::test_server_sees_nothing_that_it_need_not",
        "test_other_formats.py::test_server_that_fails[complains]",
        "test_other_formats.py::test_server_that_fails[crashes]",
        "test_other_formats.py::test_server_that_fails[exits]",
        "test_other_formats.py::test_server_that_fails[floods]",
        "test_other_formats.py::test_server_that_is_none",
        "test_other_formats.py::test_standard_input[cloop]",
        "test_other_formats.py::test_standard_input[vmdk-flat]",
        "test_sizes.py::test_a_large_format_that_does_not_tell_what_it_stores",
        "test_verbose.py::test_json_has_the_chain_as_qemu_img_shows_it",
        "test_python_images.py::test_a_secret_unlocks_luks",
    ],
    "links": [
        "test_attacks.py::test_guest_writes_a_qcow2_header_into_its_raw_disk[link]",
        "test_oci.py::test_links_out_of_a_layout",
        "test_refused.py::test_symbolic_link_that_stays_beneath",
        "test_vpc.py::test_a_parent_beneath_the_folder",
    ],
    "stdin": [
        "test_attacks.py::test_guest_writes_a_qcow2_header_into_its_raw_disk[absolute]",
        "test_attacks.py::test_guest_writes_a_qcow2_header_into_its_raw_disk[dots]",
    ],
    "made-up": [
        "test_attacks.py::test_a_check_file_reads_no_device_and_nothing_made_up",
        "test_attacks.py::test_a_listed_file_turns_into_something_else[/proc/version]",
        "test_attacks.py::test_what_the_command_line_names_is_read_as_a_pipe",
    ],
    "writers": [
        "test_changes.py::test_backing_file_open_for_writing",
        "test_changes.py::test_data_file_open_for_writing",
        "test_changes.py::test_image_open_for_writing",
        "test_changes.py::test_lock_bytes_of_write_and_resize",
        "test_copy.py::test_files_that_are_in_use",
        "test_python_copy.py::test_files_that_are_in_use",
        "test_python_images.py::test_images_in_use",
        "test_copy.py::test_qemu_is_refused_meanwhile",
        "test_copy.py::test_what_qemu_has_open_is_refused",
        "test_operations.py::test_results",
    ],
    "fresh": [
        "test_changes.py::test_block_device_written_by_another_is_read_fresh",
        "test_changes.py::test_change_behind_an_attribute_cache",
        "test_copy.py::test_update_repairs_what_the_page_cache_hides",
    ],
    "uses": [
        "test_changes.py::test_devices_of_a_mounted_btrfs",
        "test_changes.py::test_mounted_block_device",
    ],
    "counts": [
        "test_changes.py::test_block_device_whose_file_is_written_while_read",
        "test_changes.py::test_disk_written_beside_its_partition_while_it_is_read",
    ],
    "devices": [
        "test_copy.py::test_a_device_is_resumed_without_force",
        "test_copy.py::test_a_source_that_is_beneath_the_destination",
        "test_copy.py::test_devices",
        "test_copy.py::test_devices_that_are_refused",
        "test_copy.py::test_interruptions[0-INT-device]",
        "test_copy.py::test_interruptions[0-KILL-device]",
        "test_copy.py::test_standard_input[device]",
        "test_copy.py::test_what_is_mounted_from_another_loop_device",
        "test_delta.py::test_a_delta_grows_over_nothing_on_a_device",
        "test_delta.py::test_devices",
        "test_python_copy.py::test_devices",
    ],
    "holes": [
        "test_copy.py::test_files[0]",
        "test_copy.py::test_files[1]",
        "test_delta.py::test_files[10]",
        "test_python_copy.py::test_random_copies[10]",
        "test_python_copy.py::test_random_copies[3]",
        "test_python_copy.py::test_random_copies[6]",
        "test_python_copy.py::test_random_copies[9]",
    ],
    "shared": [
        "test_copy.py::test_a_source_that_changes_while_its_storage_is_shared",
        "test_copy.py::test_storage_is_shared[btrfs]",
        "test_copy.py::test_storage_is_shared[xfs]",
        "test_copy.py::test_what_shares_no_storage",
        "test_reflink.py::test_a_writer_beside",
        "test_reflink.py::test_maps_are_updated",
        "test_reflink.py::test_only_what_changed_is_listed",
        "test_reflink.py::test_qcow2_images",
        "test_reflink.py::test_random_copies",
        "test_reflink.py::test_random_files_in_snapshots",
        "test_reflink.py::test_snapshots",
        "test_reflink.py::test_without_places_everything_is_read",
    ],
    # Only tests of Rust, which say it themselves: #[cfg_attr(blkhash_portable, should_panic)] // PROMISE
    "cache": [],
}


def expect_weaker(config, items):
    """On a portable build, expects each test that docs/use/platforms.md explains to fail."""
    if "BLKHASH_PORTABLE" not in os.environ:
        return
    # Tests that fail, as expected, leave files and processes to the collection of garbage during another one.
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    for item in items:
        if promise := promise_of(item.nodeid):
            item.add_marker(pytest.mark.xfail(reason=f"portable: {promise}", strict=True))


def promise_of(node):
    """Returns the weaker promise that explains why a test fails, by its name as pytest prints it."""
    path, _, test = node.partition("::")
    file = path.split("/")[-1]
    names = {file, f"{file}::{test}", f"{file}::{test.partition('[')[0]}"}
    return next((promise for promise, tests in WEAKER.items() if names & set(tests)), None)
