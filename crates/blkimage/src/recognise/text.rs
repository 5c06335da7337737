//! Texts that are found in the place of a disk: pages and messages of servers, descriptors.
//!
//! Any other text is read as a raw disk, because it may be one of a test.

/// Returns whether this is an HTML page.
pub(super) fn is_html(head: &[u8]) -> bool {
    let Some(text) = markup(head) else { return false };
    let text = text.to_ascii_lowercase();
    let has = |tag: &str| text.windows(tag.len()).any(|it| it == tag.as_bytes());
    HTML.iter().any(|tag| text.starts_with(tag.as_bytes())) || has("<!doctype html") || has("<html")
}

/// Returns whether this is an XML document.
pub(super) fn is_xml(head: &[u8]) -> bool {
    markup(head).is_some()
}

/// Returns whether this is a JSON document.
pub(super) fn is_json(head: &[u8]) -> bool {
    let Some(text) = text(head) else { return false };
    let first = |text: &[u8]| text.trim_ascii_start().first().copied();
    match text.split_first() {
        Some((b'{', rest)) => matches!(first(rest), Some(b'"' | b'}')),
        Some((b'[', rest)) => matches!(first(rest), Some(b'{' | b'"' | b']')),
        _ => false,
    }
}

/// Returns whether this is the message of a server in plain text: all of the content is short, and begins with a status.
pub(super) fn is_message(head: &[u8]) -> bool {
    let Some(text) = text(head).filter(|_| head.len() < MAX_MESSAGE) else { return false };
    let text = text.to_ascii_lowercase();
    let has_status = match text.split_first_chunk::<3>() {
        Some(([b'4' | b'5', a, b], [b' ' | b':', ..])) => a.is_ascii_digit() && b.is_ascii_digit(),
        _ => false,
    };
    has_status || MESSAGES.iter().any(|begin| text.starts_with(begin.as_bytes()))
}

/// Returns a text that begins with a tag, a comment or a declaration.
fn markup(head: &[u8]) -> Option<&[u8]> {
    text(head).filter(|text| matches!(text, [b'<', b'!' | b'?' | b'a'..=b'z' | b'A'..=b'Z', ..]))
}

/// Returns the text without blanks in front of it. `None` if it is none: a byte is one that texts do not have.
fn text(head: &[u8]) -> Option<&[u8]> {
    let head = &head[..head.len().min(EXAMINED)];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | 0x20..=0x7e | 0x80..);
    head.iter().all(is_text).then(|| head.trim_ascii_start())
}

/// Beginnings of pages without a declaration, in lower case.
const HTML: [&str; 6] = ["<head", "<body", "<title", "<script", "<h1", "<center"];

/// Beginnings of messages, in lower case.
const MESSAGES: [&str; 9] = [
    "http/1.",
    "not found",
    "file not found",
    "access denied",
    "forbidden",
    "unauthorized",
    "bad gateway",
    "service unavailable",
    "error:",
];

/// Number of bytes that are examined.
const EXAMINED: usize = 512;

/// Length of a message, which is all of the content.
const MAX_MESSAGE: usize = 512;
