//! Case data: the text of `header`, `header2` and `xheader`.
//!
//! A header is a list of names in one line and of values in the next one, both separated by tabs. The texts are from
//! the image, and hold any character.

use std::time::Duration;

use super::section::Section;
use crate::acquisition::CaseField;
use crate::error::Result;
use crate::sys;

/// Reads the section `header`, whose text has bytes of any code page.
pub(super) fn header(section: &Section<'_>) -> Result<Vec<CaseField>> {
    let text = section.inflated()?;
    let text = match String::from_utf8(text) {
        Ok(text) => text,
        // The code page is not stated. Western ones agree on most letters.
        Err(error) => error.as_bytes().iter().map(|byte| char::from(*byte)).collect(),
    };
    Ok(fields(&text))
}

/// Reads the section `header2`, whose text is UTF-16.
pub(super) fn header2(section: &Section<'_>) -> Result<Vec<CaseField>> {
    let text = section.inflated()?;
    let is_big = text.starts_with(&[0xfe, 0xff]);
    let unit =
        |pair: &[u8; 2]| if is_big { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) };
    let units: Vec<u16> = text.as_chunks().0.iter().map(unit).collect();
    let text = String::from_utf16_lossy(&units);
    Ok(fields(text.trim_start_matches('\u{feff}')))
}

/// Reads the section `xheader` of libewf, which is XML.
pub(super) fn xheader(section: &Section<'_>) -> Result<Vec<CaseField>> {
    let text = section.inflated()?;
    let text = String::from_utf8_lossy(&text);
    let value = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(value, _)| value.to_owned())
    };
    Ok(named(|row| value(row.in_xml)))
}

/// Returns the fields of a header.
fn fields(text: &str) -> Vec<CaseField> {
    let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    let Some(names) = lines.by_ref().skip(1).find(|line| line.contains('\t')) else {
        return Vec::new();
    };
    let values: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let value = |name: &str| {
        let column = names.split('\t').position(|found| found == name)?;
        values.get(column).map(|value| (*value).to_owned())
    };
    named(|row| value(row.in_header))
}

/// Returns the fields that have a value.
fn named(value: impl Fn(&Row) -> Option<String>) -> Vec<CaseField> {
    let field = |row: &Row| {
        let value = value(row).map(|value| value.trim().to_owned())?;
        let value = if row.is_time { time(&value) } else { value };
        (!value.is_empty()).then(|| CaseField::new(row.name, row.label, value))
    };
    ROWS.iter().filter_map(field).collect()
}

/// Returns a time as people write it: `2026 11 28 18 53 28` of the clock of that machine, or seconds since 1970.
fn time(value: &str) -> String {
    if let Ok(seconds) = value.parse::<u32>() {
        return match seconds {
            0 => String::new(),
            _ => sys::utc(Duration::from_secs(u64::from(seconds))),
        };
    }
    let parts: Vec<&str> = value.split(' ').collect();
    match parts[..] {
        [year, month, day, hour, minute, second] => {
            format!("{year}-{month:0>2}-{day:0>2} {hour:0>2}:{minute:0>2}:{second:0>2}")
        }
        _ => value.to_owned(),
    }
}

/// A field of case data.
struct Row {
    /// In a header.
    in_header: &'static str,
    /// In XML.
    in_xml: &'static str,
    name: &'static str,
    label: &'static str,
    is_time: bool,
}

const fn row(
    in_header: &'static str,
    in_xml: &'static str,
    name: &'static str,
    label: &'static str,
) -> Row {
    Row { in_header, in_xml, name, label, is_time: false }
}

const ROWS: &[Row] = &[
    row("c", "case_number", "case_number", "case"),
    row("n", "evidence_number", "evidence_number", "evidence"),
    row("a", "description", "description", "about"),
    row("e", "examiner_name", "examiner", "examiner"),
    row("t", "notes", "notes", "notes"),
    Row { is_time: true, ..row("m", "acquiry_date", "acquired", "acquired") },
    Row { is_time: true, ..row("u", "system_date", "system_time", "clock") },
    row("av", "acquiry_software_version", "software", "software"),
    row("ov", "acquiry_operating_system", "system", "system"),
    row("md", "model", "model", "model"),
    row("sn", "serial_number", "serial_number", "serial"),
    row("l", "device_label", "device_label", "label"),
];
