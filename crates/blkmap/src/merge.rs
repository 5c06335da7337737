//! Makes one map from the maps of parts of an image.

use blkhash::Digest;

use crate::diff::check_parameters;
use crate::page_hashes::PageReader;
use crate::pages::{Pages, Span, SpanKind};
use crate::{Error, Map, Output, PAGE, Result, Writer};

/// Copies every page that one of `parts` knows to `writer`, which has their parameters, and compares pages that
/// several of them know. Compares every page that is copied with its hash. Returns the digest of the last
/// block padded with zeros, if it is short and known. `watch` receives the number of pages of the image that are done.
///
/// # Errors
///
/// Fails if the parts belong to images of different sizes, have different parameters, or contradict each other,
/// if a part cannot be read or is damaged, or the map cannot be written. The index is the part's.
pub fn merge<O: Output>(
    parts: &[Map],
    writer: &mut Writer<O>,
    watch: &mut dyn FnMut(u64),
) -> std::result::Result<Option<Digest>, (usize, Error)> {
    let Some(first) = parts.first() else { return Ok(None) };
    for (index, part) in parts.iter().enumerate() {
        check_parameters(first.header(), part.header()).map_err(|error| (index, error))?;
        let size = part.commit().image_size;
        let expected = first.commit().image_size;
        if size != expected {
            let reason = format!("is of an image of {size} bytes, and the first one of {expected}");
            return Err((index, Error::Mismatch(reason)));
        }
        part.check_hashes().map_err(|error| (index, error))?;
    }
    let mut walks: Vec<Pages> =
        parts.iter().map(|part| Pages::new(part, 0, part.pages())).collect();
    let mut readers: Vec<PageReader> = parts.iter().map(PageReader::new).collect();
    let (mut page, pages) = (0, first.pages());
    while page < pages {
        let mut count = pages - page;
        let mut known: Option<(usize, Span)> = None;
        let mut others = Vec::new();
        for (index, walk) in walks.iter_mut().enumerate() {
            let span = walk.current().map_err(|error| (index, error))?.expect("pages are left");
            count = count.min(span.count);
            if span.kind == SpanKind::Unknown {
                continue;
            }
            if known.is_none() {
                known = Some((index, span));
            } else {
                others.push((index, span));
            }
        }
        if let Some((index, span)) = known {
            let is_zero = |span: &Span| span.kind == SpanKind::Zeros;
            if !is_zero(&span) || !others.iter().all(|(_, span)| is_zero(span)) {
                count = count.min(PageReader::MAX);
            }
            writer.skip_to(page).map_err(|error| (index, error))?;
            copy(&mut readers, index, span, count, writer).map_err(|error| (index, error))?;
            for (other, span_of_other) in others {
                let is_equal = same(&mut readers, (index, span), (other, span_of_other), count);
                if !is_equal.map_err(|error| (other, error))? {
                    let reason = "has other digests for blocks that another part has, too";
                    return Err((other, Error::Mismatch(reason.to_owned())));
                }
            }
        }
        page += count;
        watch(page);
        walks.iter_mut().for_each(|walk| walk.advance(count));
    }
    let mut last = None;
    for (index, part) in parts.iter().enumerate() {
        match (last, part.padded_last()) {
            (None, padded) => last = padded,
            (Some(one), Some(other)) if one != other => {
                let reason = "has another digest for the last block than another part";
                return Err((index, Error::Mismatch(reason.to_owned())));
            }
            _ => {}
        }
    }
    Ok(last)
}

fn copy<O: Output>(
    readers: &mut [PageReader<'_>],
    index: usize,
    span: Span,
    count: u64,
    writer: &mut Writer<O>,
) -> Result<()> {
    match span.kind {
        SpanKind::Zeros => writer.push_zero_pages(count),
        SpanKind::Unknown => {}
        SpanKind::Stored { offset, hash } => {
            let (pages, hashes) =
                readers[index].read_with_hashes(span.first, count, offset, hash)?;
            debug_assert_eq!(pages.len() / PAGE, hashes.len() / 32);
            writer.push_pages(pages, hashes)?;
        }
    }
    Ok(())
}

/// Returns whether two parts agree about `count` pages.
fn same(
    readers: &mut [PageReader<'_>],
    one: (usize, Span),
    other: (usize, Span),
    count: u64,
) -> Result<bool> {
    match (one.1.kind, other.1.kind) {
        (SpanKind::Stored { hash: a, .. }, SpanKind::Stored { hash: b, .. }) => {
            let mut done = 0;
            while done < count {
                let left = readers[one.0].hashes(a + done, count - done)?.to_vec();
                let right = readers[other.0].hashes(b + done, count - done)?;
                let length = left.len().min(right.len());
                if left[..length] != right[..length] {
                    return Ok(false);
                }
                done += length as u64 / 32;
            }
            Ok(true)
        }
        (left, right) => Ok(left == right),
    }
}
