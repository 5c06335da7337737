//! Tests of the command `blkhash` as a whole.

#![allow(missing_docs, reason = "a test program")]

mod common;

use std::collections::HashSet;
use std::fs;
use std::process::Stdio;

use common::{Ran, Sandbox, failed};
use serde_json::Value;

/// Number of columns of a terminal.
const WIDTH: usize = 80;

/// Returns what follows a refusal: the command whose help has more.
fn hint(args: &[&str]) -> String {
    let is_name = |argument: &&&str| !argument.starts_with('-');
    let inner = match args {
        ["algorithms" | "bench" | "btrfs" | "map" | "verity", ..] => {
            let most = if args.len() > 1 && is_command(args[0], args[1]) { 2 } else { 1 };
            args.iter().take(most).take_while(is_name).fold(String::new(), |all, it| all + " " + it)
        }
        _ => String::new(),
    };
    format!("Try 'blkhash{inner} --help' for more information.\n")
}

fn is_command(outer: &str, name: &str) -> bool {
    match outer {
        "bench" => name == "image",
        "btrfs" => ["verify", "info", "algorithms", "obscure-name"].contains(&name),
        _ => false,
    }
}

fn blkhash(args: &[&str]) -> Ran {
    Sandbox::new().blkhash(args)
}

/// Returns the JSON objects that a run printed.
fn objects(args: &[&str]) -> Vec<Value> {
    let ran = blkhash(args);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Panics if a line is longer than a terminal is wide. The line of a report is not broken.
fn assert_fits(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with("report: ")) {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
}

/// Returns the objects of one kind.
fn of_kind(objects: &[Value], kind: &str) -> Vec<Value> {
    objects.iter().filter(|object| object["kind"] == kind).cloned().collect()
}

/// Returns the names of the rows of a short benchmark.
fn rows(args: &[&str]) -> Vec<String> {
    let args = [&["bench", "--json", "--iterations", "32"], args].concat();
    let rows = of_kind(&objects(&args), "row").into_iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn help_and_mistakes() {
    for args in [&["--help"][..], &["bench", "--help"], &["algorithms", "-h"], &["--version"]] {
        let ran = blkhash(args);
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(!ran.stdout.is_empty());
    }
    let wrong: [&[&str]; 14] = [
        &["benchmark"],
        &["help", "benchmark"],
        &["algorithms", "md6"],
        &["algorithms", "blake2b"],
        &["algorithms", "--nonsense"],
        &["bench", "--filter", "md6"],
        &["bench", "--block-size", "100"],
        &["bench", "--block-size", "64M", "--batch", "1024"],
        &["bench", "--threads", "0"],
        &["bench", "--time", "1", "--iterations", "1"],
        &["bench", "image"],
        &["bench", "image", "--digest", "siphash", "x.img"],
        &["bench", "--quality", "--cold"],
        &["bench", "--quality", "--filter", "sha256"],
    ];
    for args in wrong {
        let ran = blkhash(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(
            ran.stderr.starts_with("blkhash: ") && ran.stderr.ends_with(&hint(args)),
            "{ran:?}"
        );
    }
}

/// Returns the message about a refused value, without the hint about `--help`.
fn refusal(args: &[&str]) -> String {
    let ran = blkhash(args);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
    ran.stderr.strip_suffix(&hint(args)).expect("a hint at --help").to_owned()
}

#[test]
fn a_refused_number_shows_the_valid_range() {
    let numbers: [(&[&str], &[&str], &str); 8] = [
        (&["bench", "--batch"], &["0", "1025", "x", ""], "use a number from 1 to 1024"),
        (
            &["bench", "--iterations"],
            &["0", "x", "99999999999999999999"],
            "use a number from 1 to 1000000000000",
        ),
        (&["bench", "--threads"], &["0", "x"], "use a number from 1 to 1024, or all"),
        (
            &["bench", "--block-size"],
            &["100", "x", "65M"],
            "use a size from 512 to 64M, such as 64K",
        ),
        (&["bench", "--time"], &["0", "x"], "use seconds from 0.001 to 3600"),
        (&["btrfs", "verify", "x", "--threads"], &["0", "x"], "use a number from 1 to 1024"),
        (&["btrfs", "verify", "x", "--max-files"], &["70000", "x"], "use a number from 0 to 65535"),
        (&["btrfs", "info", "x", "--partition"], &["0", "x"], "use a number from 1 to 4294967295"),
    ];
    for (option, values, hint) in numbers {
        for value in values {
            let stderr = refusal(&[option, &[value]].concat());
            assert!(stderr.ends_with(&format!(": {hint}\n")), "{option:?} {value}: {stderr}");
        }
    }
    let stderr = refusal(&["btrfs", "verify", "x", "--max-errors", "x"]);
    assert!(stderr.ends_with(": use a number from 0 to 1000000000\n"), "{stderr}");
}

#[test]
fn a_refused_name_gets_a_suggestion() {
    let cases: [(&[&str], &str); 9] = [
        (&["algorithm"], "unrecognized command 'algorithm': did you mean algorithms?"),
        (
            &["measure"],
            "unrecognized command 'measure': use algorithms, bench, info, check, btrfs, map, owners or verity",
        ),
        (&["bench", "disk.img"], "unrecognized command 'disk.img': use image"),
        (&["btrfs", "vrify"], "unrecognized command 'vrify': did you mean verify?"),
        (
            &["btrfs", "verify", "--implementation", "xxhash-soft", "x"],
            "xxhash-soft: no implementation of a checksum of btrfs: did you mean xxh64-soft?",
        ),
        (
            &["bench", "--filter", "md6"],
            "--filter 'md6' matches nothing: did you mean md5?\nblkhash: use null, crc32, crc32c, ",
        ),
        (
            &["bench", "--filter", "blake3-*-x99"],
            "--filter 'blake3-*-x99' matches nothing\nblkhash: use blake3-blake3\n",
        ),
        (
            &["bench", "--quality", "--filter", "sha256"],
            "--filter 'sha256' matches nothing that --quality measures: use crc32, crc32c, \
             crc64, crc64nvme, xxh64, xxh3 or xxh128\n",
        ),
        (
            &["bench", "--quality", "--filter", "xxh65"],
            "--filter 'xxh65' matches nothing that --quality measures: did you mean xxh64?",
        ),
    ];
    for (args, expected) in cases {
        let stderr = refusal(args);
        assert!(stderr.starts_with(&format!("blkhash: {expected}")), "{args:?}: {stderr}");
    }
    let values: [(&[&str], &str, &str); 9] = [
        (&["algorithms"], "sha265", "did you mean sha256?"),
        (&["algorithms"], "sha2", "did you mean sha1?"),
        (&["bench", "image", "x", "-d"], "blake4", "did you mean blake3?"),
        (&["bench", "image", "x", "-f"], "qcow3", "did you mean qcow2?"),
        (&["bench", "--format"], "table", "unknown name: use docs, hash-speedtest, csv or json"),
        (&["btrfs", "info", "x", "--holes"], "trsut", "did you mean trust?"),
        (&["btrfs", "info", "x", "--follow"], "all", "unknown name: use beneath, any or none"),
        (&["btrfs", "verify", "x"], "--cache=maybe", "unknown name: use auto, yes or no"),
        (&["btrfs", "verify", "x"], "--progress=nevr", "did you mean never?"),
    ];
    for (option, value, hint) in values {
        let stderr = refusal(&[option, &[value]].concat());
        assert!(stderr.ends_with(&format!(": {hint}\n")), "{option:?} {value}: {stderr}");
    }
    let controls = refusal(&["bench", "--filter", "\u{1b}[2J\n"]);
    assert!(!controls.contains('\u{1b}'), "{controls}");
}

#[test]
fn help_of_commands() {
    for command in [&[][..], &["algorithms"], &["bench", "image"], &["btrfs"], &["btrfs", "verify"]]
    {
        let asked = blkhash(&[command, &["--help"]].concat());
        assert!(asked.stdout.contains("\nUsage: blkhash "), "{asked:?}");
        assert_eq!(blkhash(&[&["help"], command].concat()), asked);
    }
    assert_eq!(blkhash(&["btrfs", "help", "verify"]), blkhash(&["help", "btrfs", "verify"]));
    // Without a subcommand the help is printed as an error.
    for group in [&[][..], &["btrfs"]] {
        let usage = blkhash(&[group, &["--help"]].concat()).stdout;
        assert_eq!(blkhash(group), failed(2, usage));
    }
}

#[test]
fn a_line_for_each_algorithm() {
    let ran = blkhash(&["algorithms"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let objects = objects(&["algorithms", "--json", "--kernel"]);
    assert_fits(&ran.stdout);
    let rows = &lines[2..2 + objects.len()];
    assert_eq!(lines[rows.len() + 2], "");
    for (line, object) in rows.iter().zip(&objects) {
        let name = object["name"].as_str().unwrap();
        assert_eq!(line.split_whitespace().next(), Some(name));
        assert!(object["kernel"].is_array());
        let implementations = object["implementations"].as_array().unwrap();
        let is_chosen = |known: &&Value| !known["chosen"].as_array().unwrap().is_empty();
        let is_measured = cfg!(target_arch = "x86_64") && implementations.len() > 1;
        for known in implementations {
            assert_ne!(known["selftest"], "failed", "{known}");
            assert_eq!(known["reason"].is_null(), is_chosen(&known), "{known}");
            assert_eq!(known["assumed_cycles_per_byte"].is_number(), is_measured);
        }
        assert_eq!(object["assumed_of"].is_string(), is_measured);
        let open_ends = implementations.iter().filter(is_chosen).filter(|known| {
            known["chosen"].as_array().unwrap().iter().any(|range| range[1].is_null())
        });
        assert_eq!(open_ends.count(), 1, "{name} has one implementation for large batches");
    }
}

#[test]
fn measured_algorithms() {
    for object in objects(&["algorithms", "--measure", "--json", "sha256", "md5"]) {
        let implementations = object["implementations"].as_array().unwrap();
        assert!(!object["cpu"].as_str().unwrap().is_empty());
        for known in implementations {
            let is_measured = known["measured_mib_per_second"].as_f64().is_some();
            assert_eq!(is_measured, known["selftest"] == "passed", "{known}");
        }
        let usable = implementations.iter().filter(|known| known["selftest"] == "passed");
        assert_eq!(object["measured_best"].is_null(), usable.count() == 1);
        let best = implementations.iter().find(|known| known["name"] == object["measured_best"]);
        assert!(best.is_none_or(|known| known["selftest"] == "passed"), "{object}");
    }
    let ran = blkhash(&["algorithms", "--measure"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    assert_fits(&ran.stdout);
    assert!(ran.stdout.lines().next().unwrap().contains(" MiB/s "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nMeasured: "), "{}", ran.stdout);
}

#[test]
fn a_benchmark_recommends_an_implementation() {
    let args = ["bench", "--iterations", "32", "--filter"];
    let ran = blkhash(&[&args[..], &["sha256"]].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    let known = &objects(&["algorithms", "--json", "sha256"])[0]["implementations"];
    let usable = known.as_array().unwrap().iter().filter(|it| it["selftest"] == "passed");
    if usable.count() > 1 {
        let report = ran.stdout.lines().filter(|line| line.starts_with("report: "));
        assert_eq!(report.filter(|line| line.contains("; MiB/s: sha256-soft ")).count(), 1);
        assert!(ran.stdout.contains(" would use:\n  sha256-"), "{}", ran.stdout);
    }
    // One implementation leaves no choice.
    for name in ["md5", "sha256-soft"] {
        let ran = blkhash(&[&args[..], &[name]].concat());
        assert!(!ran.stdout.contains(" would use:"), "{}", ran.stdout);
    }
}

#[test]
fn the_record_of_an_algorithm() {
    let ran = blkhash(&["algorithms", "SHA-256", "xxhash"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    for line in [
        "name           : sha256",
        "digest bits    : 256",
        "standard       : FIPS 180-4",
        "implementation : sha256-soft",
        "name           : xxh64",
        "linux          : yes, xxhash64 in its crypto API",
    ] {
        assert!(ran.stdout.lines().any(|found| found == line), "{line}\n{}", ran.stdout);
    }
    assert!(ran.stdout.contains("\npreference     : 1 of "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nstatus         : used"), "{}", ran.stdout);
    let last = "To measure on this CPU: blkhash algorithms --measure sha256\n";
    assert!(ran.stdout.ends_with(last), "{}", ran.stdout);
    let origin = if cfg!(target_arch = "x86_64") { "a guess, " } else { "an assumed order, " };
    assert!(ran.stdout.contains(&format!("\nPreference: {origin}")), "{}", ran.stdout);
    let with_kernel = blkhash(&["algorithms", "--kernel", "sha512-256"]);
    assert!(with_kernel.stdout.contains("kernel driver  : - ("), "{}", with_kernel.stdout);
}

#[test]
fn disabled_implementations_are_reported() {
    let sandbox = Sandbox::new();
    let output = sandbox
        .blkhash_command()
        .args(["algorithms", "--json", "sha256"])
        .env("BLKHASH_CPU_DISABLE", "sha,avx2,avx512,mmx")
        .env("BLKHASH_IMPLEMENTATION", "sha256-none,sha256-x86_sha,sha256-soft")
        .output()
        .unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    for known in object["implementations"].as_array().unwrap() {
        // On other architectures than x86-64, one needs no feature that could be disabled.
        assert_eq!(known["selftest"] == "passed", known["needs"].is_null(), "{known}");
        assert_eq!(known["reason"].is_null(), known["name"] == "sha256-soft", "{known}");
    }
    let record = sandbox
        .blkhash_command()
        .args(["algorithms", "sha256"])
        .env("BLKHASH_CPU_DISABLE", "avx2")
        .env("BLKHASH_IMPLEMENTATION", "sha256-soft")
        .output()
        .unwrap();
    let record = String::from_utf8(record.stdout).unwrap();
    assert!(record.contains("\nstatus         : used\n"), "{record}");
    for known in object["implementations"].as_array().unwrap() {
        let name = known["name"].as_str().unwrap();
        let (_, rest) = record.split_once(&format!(": {name}\n")).unwrap();
        let status = rest.lines().find_map(|line| line.strip_prefix("status         : ")).unwrap();
        let expected = match name {
            "sha256-soft" => vec!["used"],
            "sha256-avx2-x8" => {
                vec![
                    "not used: BLKHASH_CPU_DISABLE switches avx2 off",
                    "not on this CPU: needs avx2",
                ]
            }
            _ if status.starts_with("not on this CPU: needs ") => vec![status],
            _ => vec!["available: BLKHASH_IMPLEMENTATION names another"],
        };
        assert!(expected.contains(&status), "{name}: {status}");
    }
    let stderr = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(lines[0].contains("BLKHASH_IMPLEMENTATION: sha256-none: there is none"), "{stderr}");
    assert!(lines[1].contains("sha256-x86_sha: "), "{stderr}");
    assert!(lines[2].contains("BLKHASH_CPU_DISABLE: mmx: there is only sha"), "{stderr}");
}

#[test]
#[ignore = "slow"]
fn filters_match_globs_and_names_of_other_programs() {
    assert_eq!(rows(&["--filter", "MD5"]), ["md5-md5"]);
    assert_eq!(rows(&["--filter", "null-*"]), ["NULL-NOP", "NULL-MEMCPY"]);
    assert_eq!(rows(&["--filter", "CRC32C-SW"]), ["crc32c-table"]);
    assert_eq!(rows(&["--filter", "sha256-ref", "--filter", "sha1"]), ["sha1-sha1", "sha256-soft"]);
    for alias in ["CRC32C-NI", "XXHASH", "BLAKE2b-256-arch", "blake2b", "SHA3"] {
        assert!(!rows(&["--filter", alias]).is_empty(), "{alias}");
    }
    assert!(rows(&["--filter", "xx*"]).iter().all(|name| name.starts_with("xx")));
}

#[test]
#[ignore = "slow"]
fn every_implementation_that_runs_has_a_row() {
    let measured: HashSet<String> = rows(&["--block-size", "512"]).into_iter().collect();
    for object in objects(&["algorithms", "--json"]) {
        for known in object["implementations"].as_array().unwrap() {
            let name = known["name"].as_str().unwrap();
            let expected = known["selftest"] == "passed" && name != "null-nop";
            assert_eq!(measured.contains(name), expected, "{name}");
        }
    }
    assert!(measured.contains("NULL-NOP") && measured.contains("NULL-MEMCPY"));
}

#[test]
fn objects_record_how_they_were_measured() {
    let common = ["bench", "--json", "--filter", "xxh3", "--iterations", "100"];
    let objects = objects(&[&common[..], &["--threads", "1,2", "--batch", "4"]].concat());
    assert_eq!(objects[0]["kind"], "run");
    assert_eq!(objects[0]["block_size"], 4096);
    assert!(objects[0]["machine"]["cpu"].is_string());
    let rows = of_kind(&objects, "row");
    assert_eq!(rows.len(), 2);
    assert_eq!(objects.len(), 1 + rows.len() + of_kind(&objects, "fastest").len());
    for (row, threads) in rows.iter().zip([1, 2]) {
        assert_eq!(row["threads"], threads);
        assert_eq!(row["memory"], "hot");
        // Ten samples of three batches.
        assert_eq!(row["blocks"], 120 * threads);
        assert_eq!(row["samples"].as_array().unwrap().len(), 10);
        assert!(row["ratio"].as_f64().unwrap() > 0.0, "crc32c is measured, too");
        let spread = &row["ticks"];
        let value = |name: &str| spread[name].as_f64().unwrap();
        assert!(value("min") <= value("median") && value("median") <= value("max"));
    }
}

#[test]
fn layouts() {
    let common = ["bench", "--iterations", "32", "--filter", "sha256-soft", "--filter", "null-nop"];
    let run = |args: &[&str]| {
        let ran = blkhash(&[&common[..], args].concat());
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
        ran.stdout
    };
    let docs = run(&[]);
    assert!(docs.contains("\nDigest") && docs.contains("Ratio"), "{docs}");
    assert!(docs.starts_with("CPU: "), "{docs}");
    assert_fits(&docs);
    assert_eq!(docs.contains("*  "), docs.contains("\n* Rough: "), "{docs}");
    let lines = run(&["--format", "hash-speedtest"]);
    assert!(lines.starts_with("Block size:     4096\n"), "{lines}");
    assert!(lines.contains("      SHA256-ref: cycles: "), "{lines}");
    assert!(lines.contains("        NULL-NOP: cycles: "), "{lines}");
    assert_fits(&lines);
    let csv = run(&["--csv"]);
    assert_eq!(csv.lines().count(), 3);
    assert_eq!(csv, csv.replace(' ', ""));
}

#[test]
#[ignore = "slow"]
fn the_whole_table_fits_a_terminal() {
    let ran = blkhash(&["bench", "--iterations", "32"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    assert_fits(&ran.stdout);
    for args in [&["btrfs", "algorithms"][..], &["btrfs", "algorithms", "--data", "1023T"]] {
        let ran = blkhash(args);
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
        assert_fits(&ran.stdout);
    }
}

#[test]
fn blocks_from_memory() {
    let args = ["--cold", "--filter", "crc32", "--block-size", "64k"];
    let args = [&["bench", "--json", "--iterations", "32"], &args[..]].concat();
    let objects = objects(&args);
    let rows = of_kind(&objects, "row");
    let memory: Vec<&Value> = rows.iter().map(|row| &row["memory"]).collect();
    assert_eq!(memory, ["hot", "cold"]);
    assert!(objects[0]["cold_buffer"].as_u64().unwrap() >= 1 << 20);
}

#[test]
#[ignore = "slow"]
fn charts_are_xml_with_a_bar_for_each_row() {
    let sandbox = Sandbox::new();
    let args = ["bench", "--iterations", "32", "--json", "--svg", "chart.svg", "--filter", "*sha*"];
    let ran = sandbox.blkhash(&args);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let chart = fs::read_to_string(sandbox.path().join("chart.svg")).unwrap();
    let names = well_formed(&chart);
    let bars = names.iter().filter(|name| *name == "rect").count();
    let objects: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = of_kind(&objects, "row");
    assert_eq!(bars, rows.len());
    for row in rows {
        assert!(chart.contains(&format!(">{}<", row["name"].as_str().unwrap())));
    }
    let ran = sandbox.blkhash(&["bench", "--iterations", "1", "--filter", "md5", "--svg", "no/x"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stdout.contains("md5-md5"), "the figures are printed all the same");
    assert_eq!(ran.stderr, "blkhash: no/x: No such file or directory\n");
}

/// Returns the names of the elements of a document. Panics if tags do not match.
fn well_formed(text: &str) -> Vec<String> {
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    for part in text.split('<').skip(1) {
        let (tag, content) = part.split_once('>').expect("tags end");
        assert!(
            !content.contains('>') && content.split('&').skip(1).all(|rest| rest.contains(';'))
        );
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap().to_owned();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            seen.push(name.clone());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    seen
}

#[test]
#[ignore = "slow"]
fn quality_of_checksums() {
    let objects =
        objects(&["bench", "--quality", "--json", "--filter", "crc32c", "--filter", "xxh3"]);
    assert_eq!(objects.len(), 2);
    let [crc, xxh] = &objects[..] else { unreachable!() };
    assert_eq!((&crc["algorithm"], &crc["linear"]), (&"crc32c".into(), &true.into()));
    assert_eq!(crc["shortest_undetected_burst"], 33);
    for errors in crc["errors"].as_array().unwrap() {
        assert_eq!(errors["undetected"], 0, "{errors}");
    }
    assert!(crc["forgery"]["forged"].as_u64().unwrap() > 0);
    assert_eq!((&xxh["algorithm"], &xxh["linear"]), (&"xxh3".into(), &false.into()));
    assert!(xxh["forgery"].is_null());
    let text = blkhash(&["bench", "--quality", "--filter", "crc32c"]);
    assert_eq!(text.status, Some(0));
    assert_fits(&blkhash(&["bench", "--quality"]).stdout);
    for title in ["Avalanche", "Detection", "Collisions", "Forgery"] {
        assert!(text.stdout.contains(title), "{title}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let sandbox = Sandbox::new();
    for args in [&["algorithms"][..], &["bench", "--iterations", "1", "--filter", "md5"]] {
        let mut command = sandbox.blkhash_command();
        let mut child =
            command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn blksum_hashes_with_the_implementation_that_is_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.write("disk.img", vec![b'x'; 300_000]);
    let expected = sandbox.blksum(&["disk.img"]);
    let sha256 = &objects(&["algorithms", "--json", "sha256"])[0];
    for known in sha256["implementations"].as_array().unwrap() {
        let name = known["name"].as_str().unwrap();
        let ran = sandbox.blksum(&["--implementation", name, "disk.img"]);
        let piped =
            sandbox.blksum_with_input(&["--implementation", name], &vec![b'x'; 300_000]).stdout;
        if known["selftest"] == "passed" {
            assert_eq!(ran, expected, "{name}");
            assert_eq!(piped, expected.stdout.replace("disk.img", "-"), "{name}");
        } else {
            assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{name}");
        }
    }
    let ran = sandbox.blksum(&["--implementation", "blake3-blake3", "disk.img"]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("sha256 has sha256-soft, "), "{}", ran.stderr);
    let output = sandbox
        .blksum_command()
        .arg("disk.img")
        .env("BLKHASH_IMPLEMENTATION", "sha256-none")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected.stdout);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("blksum: warning: BLKHASH_IMPLEMENTATION: sha256-none: "),
        "{stderr}"
    );
}

#[test]
fn bench_image_measures_each_digest_on_each_number_of_threads() {
    let sandbox = Sandbox::new();
    sandbox.write("a.img", vec![7; 1 << 20]);
    let args = ["bench", "image", "--time", "0.001", "--threads", "1,2", "-d", "md5", "a.img"];
    let ran = sandbox.blkhash(&args);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "a.img: raw, 1 MiB with 1.00 MiB of data");
    assert!(lines[6].starts_with("null ") && lines[7].starts_with("md5 "), "{lines:?}");
    assert_fits(&ran.stdout);

    let ran = sandbox.blkhash(&[&args[..], &["--json"]].concat());
    let objects: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&objects[0]["format"], &objects[0]["data"]), (&"raw".into(), &(1 << 20).into()));
    let rows: Vec<_> = objects[1..].iter().map(|row| (&row["digest"], &row["threads"])).collect();
    let row = |digest: &str, threads: u64| (Value::from(digest), Value::from(threads));
    let expected = [row("null", 1), row("null", 2), row("md5", 1), row("md5", 2)];
    assert_eq!(rows, expected.each_ref().map(|(digest, threads)| (digest, threads)));

    let missing = sandbox.blkhash(&["bench", "image", "missing.img"]);
    let reason = "blkhash: missing.img: No such file or directory\n";
    assert_eq!(missing, failed(1, reason));
}
