//! Pages of `QueryChangedDiskAreas` of vSphere: JSON of govmomi and pyVmomi, and the text that pyVmomi prints.
//!
//! A page covers a part of the disk and begins where the last one ended. The last one ends with the disk.

use std::io::Read;

use serde::Deserialize;
use serde::de::{Error, IgnoredAny, MapAccess};

use super::ListError;
use super::columns::number;
use super::extents::{Extents, extent};
use super::json::{self, TakeRecord};
use super::text::{MAX_TOKEN, Text, Token};

/// The first line of a page as text.
pub(super) const HEAD: &str = "(vim.VirtualMachine.DiskChangeInfo) {";

/// Reads all pages of JSON into `extents`.
pub(super) fn read_json<R: Read>(
    text: &mut Text<R>,
    extents: &mut Extents,
) -> Result<(), ListError> {
    let mut pages = Pages { extents, end: 0 };
    json::read(text, &mut pages)?;
    pages.finish()
}

struct Pages<'a> {
    extents: &'a mut Extents,
    /// End of the pages so far.
    end: u64,
}

impl Pages<'_> {
    /// Begins a page. Fails if it does not follow the last one.
    fn begin(&mut self, start: u64, length: u64) -> Result<(), String> {
        let end = self.end;
        if start != end {
            return Err(format!(
                "the page from {start} on does not follow the end of the last, {end}"
            ));
        }
        self.end = extent(start, length)?.end;
        Ok(())
    }

    /// States the size of the disk.
    fn finish(self) -> Result<(), ListError> {
        let stated = self.extents.state_disk_size(self.end);
        stated.map_err(|problem| ListError::of_list(&problem))
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
        for area in areas.take() {
            check_area(area.start, area.end, start, self.end).map_err(A::Error::custom)?;
            self.extents.add(area.start, area.end - area.start).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// Fails if an area is not within its page.
fn check_area(start: u64, end: u64, page_start: u64, page_end: u64) -> Result<(), String> {
    if start < page_start || end > page_end {
        let page = format!("the page of {page_start} to {page_end}");
        return Err(format!("the area of {start} to {end} is not within {page}"));
    }
    Ok(())
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

/// Reads all pages of text into `extents`.
pub(super) fn read_text<R: Read>(
    text: &mut Text<R>,
    extents: &mut Extents,
) -> Result<(), ListError> {
    let mut pages = Pages { extents, end: 0 };
    let mut place = Place::Outside;
    let mut line = Vec::new();
    for count in 1.. {
        match text.read_token(b'\n', &mut line)? {
            Token::TooLong => {
                let problem = format!("has more than {MAX_TOKEN} bytes");
                return Err(ListError::at_line(count, &problem));
            }
            Token::Cut if line.is_empty() => break,
            Token::Cut | Token::Whole => {}
        }
        let words = line.trim_ascii();
        if !words.is_empty() {
            let next = place.next(words, &mut pages);
            place = next.map_err(|problem| ListError::at_line(count, &problem))?;
        }
    }
    match place {
        Place::Outside => pages.finish(),
        _ => Err(ListError::of_list("the list is cut")),
    }
}

/// Where in a text the next line is. Fields come in the order in which pyVmomi prints them.
#[derive(Clone, Copy)]
enum Place {
    Outside,
    /// Before `startOffset`.
    Page,
    /// Before `length`.
    PageLength {
        start: u64,
    },
    /// Before `changedArea`.
    PageAreas {
        start: u64,
    },
    /// Before an area.
    Areas {
        start: u64,
    },
    /// Before the end of the areas.
    AreasEnd,
    /// Within an area: before `start`.
    Area {
        start: u64,
    },
    /// Before its `length`.
    AreaLength {
        start: u64,
        area: u64,
    },
    /// Behind it.
    AreaEnd {
        start: u64,
    },
    /// Before the end of the page.
    PageEnd,
}

impl Place {
    fn next(self, line: &[u8], pages: &mut Pages<'_>) -> Result<Self, String> {
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
        match self {
            Self::Page | Self::Area { .. } if is_dynamic => Ok(self),
            Self::Outside if line == HEAD.as_bytes() => Ok(Self::Page),
            Self::Page => Ok(Self::PageLength { start: value("startOffset", ",")? }),
            Self::PageLength { start } => {
                pages.begin(start, value("length", ",")?)?;
                Ok(Self::PageAreas { start })
            }
            Self::PageAreas { start } if line == AREAS => Ok(Self::Areas { start }),
            Self::PageAreas { .. } if line.strip_suffix(b"]") == Some(AREAS) => Ok(Self::PageEnd),
            Self::Areas { start } if line == AREA => Ok(Self::Area { start }),
            Self::Area { start } => Ok(Self::AreaLength { start, area: value("start", ",")? }),
            Self::AreaLength { start, area } => {
                let found = extent(area, value("length", "")?)?;
                check_area(found.start, found.end, start, pages.end)?;
                pages.extents.add(found.start, found.end - found.start)?;
                Ok(Self::AreaEnd { start })
            }
            Self::AreaEnd { start } if line == b"}," => Ok(Self::Areas { start }),
            Self::AreaEnd { .. } if line == b"}" => Ok(Self::AreasEnd),
            Self::AreasEnd if line == b"]" => Ok(Self::PageEnd),
            Self::PageEnd if line == b"}" => Ok(Self::Outside),
            _ => Err(format!("'{}' is not expected here", line.escape_ascii())),
        }
    }
}
