//! Tests every layout with one small report.

use super::*;
use crate::bench::Sample;
use crate::machine::Machine;
use crate::stats::Spread;

fn row(name: &str, memory: Memory, ticks: f64) -> Row {
    let spread = |value: f64| Spread { min: value, median: value, max: value, mad: 0.0 };
    Row {
        group: name.split('-').next().unwrap().to_owned(),
        name: name.to_owned(),
        row_name: (name == "sha256-x86_sha").then(|| "SHA256-NI".to_owned()),
        scenario: Scenario { threads: 1, memory },
        blocks: 100,
        ticks: spread(ticks),
        core_cycles: None,
        speed: (name != "NULL-NOP").then(|| spread(4096.0)),
        ratio: Some(ticks / 100.0),
        samples: vec![Sample {
            blocks: 100,
            ticks: ticks as u64 * 100,
            core_cycles: None,
            nanoseconds: 1000,
        }],
    }
}

fn report() -> Report {
    let machine = Machine {
        cpu: "A & <B>".into(),
        features: vec!["avx2".into()],
        processors: 2,
        kernel: "Linux 6".into(),
        compiler: "rustc 1".into(),
        date: "2026-01-31 12:00".into(),
        last_level_cache: Some(1 << 20),
    };
    let conditions = Conditions {
        block_size: 4096,
        batch: 16,
        repetitions: 10,
        ticks: "cycles of the time stamp counter",
        ticks_per_nanosecond: 2.6,
        core_cycles_missing: Some("no".into()),
        pinned: true,
        cold_buffer: Some(1 << 30),
        notes: vec!["a note".into()],
    };
    let rows = vec![
        row("NULL-NOP", Memory::Hot, 2.0),
        row("crc32c-soft", Memory::Hot, 100.0),
        row("sha256-x86_sha", Memory::Hot, 8352.0),
        row("crc32c-soft", Memory::Cold, 300.0),
    ];
    Report { machine, conditions, rows }
}

#[test]
fn the_table_of_the_documentation() {
    let text = docs(&report(), usize::MAX);
    assert!(
        text.starts_with("CPU:       A & <B>, 2 processors, last-level cache 1 MiB\n"),
        "{text}"
    );
    assert!(text.contains("\nNote:      a note\n"), "{text}");
    let expected = "
16 blocks of 4 KiB at a time, from memory, 1 thread

Digest  Cycles/4KiB  Ratio  MiB/s  ± %   Implementation
------  -----------  -----  -----  ----  --------------
crc32c          300   3.00   4096  0.0   crc32c-soft
";
    if cfg!(target_arch = "x86_64") {
        assert!(text.ends_with(expected), "{text}");
    }
    assert!(text.contains("no core cycles (no)"));
}

#[test]
fn tables_fit_a_terminal_and_mark_what_is_noisy() {
    let mut report = report();
    report.machine.features = vec!["avx512vbmi".into(); 20];
    report.conditions.notes = vec!["a note of several words ".repeat(10)];
    report.conditions.core_cycles_missing = None;
    let noisy = Spread { min: 60_000.0, median: 111_206.0, max: 400_000.0, mad: 55_000.0 };
    let mut longest = row("blake2s256-blake2s_simd", Memory::Hot, 1.0);
    longest.ticks = noisy;
    longest.core_cycles = Some(noisy);
    longest.speed = Some(Spread { median: 99_999.0, ..noisy });
    longest.ratio = Some(99.99);
    report.rows = vec![row("NULL-NOP", Memory::Hot, 2.0), longest];
    let text = docs(&report, WIDTH);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    let marked: Vec<_> = text.lines().filter(|line| line.contains(MARK)).collect();
    assert_eq!(marked.len(), 1, "{text}");
    assert!(marked[0].contains("49.5*  blake2s256-blake2s_simd"), "{text}");
    let narrow = docs(&report, 40);
    let (_, table) = narrow.split_once("perf events\n\n").unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 40), "{table}");
    assert!(table.contains("blake2s256-blake2s_simd"), "{table}");
}

#[test]
fn the_lines_of_hash_speedtest() {
    let text = speedtest(&report());
    assert!(
        text.starts_with("Block size:     4096\nIterations:     100\nBatch:          16\n"),
        "{text}"
    );
    let line = "       SHA256-NI: cycles:       835200, cycles/i     8352,   390625.000 MiB/s";
    assert!(text.lines().any(|found| found == line), "{text}");
}

#[test]
fn csv_has_a_name_for_each_value() {
    let text = csv(&report());
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    assert_eq!(lines[3][1], "sha256-x86_sha");
    assert_eq!(lines[1][13], "", "what does not read has no speed");
}

#[test]
fn objects() {
    let text = json(&report());
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["kind"], "run");
    assert_eq!(lines[0]["machine"]["cpu"], "A & <B>");
    assert_eq!(lines[4]["memory"], "cold");
    assert_eq!(lines[4]["ticks"]["median"], 300.0);
}

#[test]
fn a_bar_for_each_row_that_reads() {
    let text = svg(&report());
    assert_eq!(text.matches("<rect").count(), 3);
    assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
    assert!(text.contains("A &amp; &lt;B&gt;") && !text.contains("<B>"));
    assert!(text.contains("prefers-color-scheme: dark"));
    assert!(text.contains("2026-01-31"));
}
