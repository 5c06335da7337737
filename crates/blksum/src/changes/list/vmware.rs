//! Pages of `QueryChangedDiskAreas` of vSphere: JSON of govmomi and pyVmomi, and the text that pyVmomi prints.
//!
//! A page covers a part of the disk and begins where the last one ended. The last one ends with the disk.

use std::io::Read;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Error, IgnoredAny, MapAccess};

use super::ListError;
use super::columns::number;
use super::extents::{Extents, extent};
use super::json::{self, TakeRecord};
use super::text::Text;

/// The first line of a page as text.
const HEAD: &[u8] = b"(vim.VirtualMachine.DiskChangeInfo) {";

/// Returns whether a text with this head is one of pyVmomi, and no JSON.
pub(super) fn is_text(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(HEAD)
}

/// Reads all pages into `extents`.
pub(super) fn read<R: Read>(text: &mut Text<R>, extents: &mut Extents) -> Result<(), ListError> {
    let mut pages = Pages { extents, page: 0..0 };
    match is_text(text.head()) {
        true => read_text(text, &mut pages)?,
        false => json::read(text, &mut pages)?,
    }
    let size = pages.page.end;
    extents.state_disk_size(size).map_err(|problem| ListError::of_list(&problem))
}

struct Pages<'a> {
    extents: &'a mut Extents,
    /// The part of the disk that the last page covers.
    page: Range<u64>,
}

impl Pages<'_> {
    /// Begins a page. Fails if it does not follow the last one.
    fn begin(&mut self, start: u64, length: u64) -> Result<(), String> {
        let end = self.page.end;
        if start != end {
            let problem = "does not follow the end of the last";
            return Err(format!("the page from {start} on {problem}, {end}"));
        }
        self.page = extent(start, length)?;
        Ok(())
    }

    /// Adds an area. Fails if it is not within the page.
    fn add(&mut self, area: Range<u64>) -> Result<(), String> {
        let Range { start, end } = self.page;
        if area.start < start || area.end > end {
            let (first, last) = (area.start, area.end);
            let page = format!("the page of {start} to {end}");
            return Err(format!("the area of {first} to {last} is not within {page}"));
        }
        self.extents.add(area.start, area.end - area.start)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(field_identifier)]
enum Field {
    #[serde(rename = "startOffset", alias = "StartOffset")]
    StartOffset,
    #[serde(rename = "length", alias = "Length")]
    Length,
    #[serde(rename = "changedArea", alias = "ChangedArea")]
    ChangedArea,
    #[serde(rename = "_vimtype", alias = "_typeName")]
    Type,
    #[serde(rename = "dynamicType")]
    DynamicType,
    #[serde(rename = "dynamicProperty")]
    DynamicProperty,
}

impl TakeRecord for Pages<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, mut page: A) -> Result<(), A::Error> {
        let mut seen = Vec::new();
        let (mut start, mut length) = (None, None);
        let mut areas = Extents::default();
        while let Some(field) = page.next_key()? {
            if seen.contains(&field) {
                return Err(A::Error::custom("duplicate field"));
            }
            seen.push(field);
            match field {
                Field::StartOffset => start = Some(page.next_value::<u64>()?),
                Field::Length => length = Some(page.next_value::<u64>()?),
                Field::ChangedArea => page.next_value_seed(json::array(&mut Areas(&mut areas)))?,
                Field::Type | Field::DynamicType => {
                    page.next_value::<Option<String>>().map(drop)?;
                }
                Field::DynamicProperty => page.next_value::<Option<[IgnoredAny; 0]>>().map(drop)?,
            }
        }
        let start = start.ok_or_else(|| A::Error::missing_field("startOffset"))?;
        let length = length.ok_or_else(|| A::Error::missing_field("length"))?;
        self.begin(start, length).map_err(A::Error::custom)?;
        areas.take().into_iter().try_for_each(|area| self.add(area)).map_err(A::Error::custom)
    }
}

struct Areas<'a>(&'a mut Extents);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    #[serde(alias = "Start")]
    start: u64,
    #[serde(alias = "Length")]
    length: u64,
    #[serde(rename = "_vimtype", alias = "_typeName")]
    _type: Option<String>,
    #[serde(rename = "dynamicType")]
    _dynamic_type: Option<String>,
    #[serde(rename = "dynamicProperty")]
    _dynamic_property: Option<[IgnoredAny; 0]>,
}

impl TakeRecord for Areas<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error> {
        let area: Area = json::record(record)?;
        self.0.add(area.start, area.length).map_err(A::Error::custom)
    }
}

fn read_text<R: Read>(text: &mut Text<R>, pages: &mut Pages<'_>) -> Result<(), ListError> {
    let mut next = Next::Head;
    let mut line = Vec::new();
    loop {
        let number = text.read_line(&mut line)?;
        let words = line.trim_ascii();
        if !words.is_empty() {
            let read = next.read(words, pages);
            next = read.map_err(|problem| ListError::at_line(number, &problem))?;
        }
        if !line.ends_with(b"\n") {
            break;
        }
    }
    match next {
        Next::Head => Ok(()),
        _ => Err(ListError::of_list("the list is cut")),
    }
}

/// What the next line of a text is. Fields come in the order in which pyVmomi prints them.
#[derive(Clone, Copy)]
enum Next {
    /// The first line of a page, or the end of the text.
    Head,
    /// `startOffset`.
    Start,
    /// `length` of a page from here on.
    Length(u64),
    /// `changedArea`.
    Areas,
    /// The first line of an area.
    Area,
    /// Its `start`.
    AreaStart,
    /// `length` of an area from here on.
    AreaLength(u64),
    /// The end of an area.
    AreaEnd,
    /// The end of all areas.
    AreasEnd,
    /// The end of the page.
    End,
}

impl Next {
    /// Reads this line. Returns what follows.
    fn read(self, line: &[u8], pages: &mut Pages<'_>) -> Result<Self, String> {
        const AREAS: &[u8] =
            b"changedArea = (vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) [";
        const AREA: &[u8] = b"(vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) {";
        let is_dynamic = line == b"dynamicType = <unset>,"
            || line == b"dynamicProperty = (vmodl.DynamicProperty) [],";
        let value = |name: &str, end: &str| {
            let digits = line.strip_prefix(name.as_bytes()).and_then(|it| it.strip_prefix(b" = "));
            let digits = digits.and_then(|digits| digits.strip_suffix(end.as_bytes()));
            digits.ok_or_else(|| format!("'{name} = NUMBER{end}' is expected")).and_then(number)
        };
        Ok(match self {
            Self::Start | Self::AreaStart if is_dynamic => self,
            Self::Head if line == HEAD => Self::Start,
            Self::Start => Self::Length(value("startOffset", ",")?),
            Self::Length(start) => {
                pages.begin(start, value("length", ",")?)?;
                Self::Areas
            }
            Self::Areas if line == AREAS => Self::Area,
            Self::Areas if line.strip_suffix(b"]") == Some(AREAS) => Self::End,
            Self::Area if line == AREA => Self::AreaStart,
            Self::AreaStart => Self::AreaLength(value("start", ",")?),
            Self::AreaLength(start) => {
                pages.add(extent(start, value("length", "")?)?)?;
                Self::AreaEnd
            }
            Self::AreaEnd if line == b"}," => Self::Area,
            Self::AreaEnd if line == b"}" => Self::AreasEnd,
            Self::AreasEnd if line == b"]" => Self::End,
            Self::End if line == b"}" => Self::Head,
            _ => return Err(format!("'{}' is not expected here", line.escape_ascii())),
        })
    }
}
