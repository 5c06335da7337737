//! Small answers in XML: the texts of elements by their names.
//!
//! Entities are XML's, elements are nested at most [`MAX_DEPTH`] deep, and texts are at most [`MAX_TEXT`] bytes.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// Calls `found` with the name and the text of each element that contains no other one, and with the name of each other
/// element at its end, without a text. Returns `None` if the answer is no XML or exceeds a limit, or if `found` does.
pub(crate) fn each_element(
    body: &[u8],
    mut found: impl FnMut(&str, Option<&str>) -> Option<()>,
) -> Option<()> {
    let mut reader = Reader::from_str(std::str::from_utf8(body).ok()?);
    let mut depth = 0_usize;
    let (mut text, mut is_leaf) = (String::new(), false);
    loop {
        match reader.read_event().ok()? {
            Event::Start(_) => {
                depth += 1;
                (text, is_leaf) = (String::new(), true);
            }
            Event::End(end) => {
                depth = depth.checked_sub(1)?;
                found(end.local_name().into_inner(), is_leaf.then_some(&*text))?;
                is_leaf = false;
            }
            Event::Empty(element) => {
                is_leaf = false;
                found(element.local_name().into_inner(), Some(""))?;
            }
            Event::Text(content) => text.push_str(&content),
            Event::CData(content) => text.push_str(&content),
            Event::GeneralRef(name) => match name.resolve_char_ref().ok()? {
                Some(c) => text.push(c),
                None => text.push_str(resolve_predefined_entity(&name)?),
            },
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::DocType(_) => return None,
            Event::Eof => return (depth == 0).then_some(()),
        }
        if depth > MAX_DEPTH || text.len() > MAX_TEXT {
            return None;
        }
    }
}

/// Returns the text of the first element of each name. `None` if the answer is no XML.
pub(crate) fn values<const N: usize>(
    body: &[u8],
    names: &[&str; N],
) -> Option<[Option<String>; N]> {
    let mut values = [const { None }; N];
    each_element(body, |name, text| {
        if let (Some(at), Some(text)) = (names.iter().position(|it| *it == name), text) {
            values[at].get_or_insert_with(|| text.to_owned());
        }
        Some(())
    })?;
    Some(values)
}

/// Maximum depth of elements in an answer of an S3 server.
/// Limit in elements.
const MAX_DEPTH: usize = 16;

/// Maximum length of a text in an answer of an S3 server. Tokens of sessions are up to 2 KB.
/// Limit in bytes.
const MAX_TEXT: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_elements() {
        let body = br#"<?xml version="1.0"?><Error xmlns="x"><Code>NoSuchKey</Code><Message>a &lt;b&gt; &#34;c&#x22; &quot;<![CDATA[<d>]]></Message><E/></Error>"#;
        let found = values(body, &["Code", "Message", "E", "Error", "Other"]).unwrap();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(found, [text("NoSuchKey"), text("a <b> \"c\" \"<d>"), text(""), None, None]);
    }

    #[test]
    fn hostile_documents_are_refused() {
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        let long = format!("<a>{}</a>", "x".repeat(MAX_TEXT + 1));
        let bomb = "<!DOCTYPE a [<!ENTITY b \"xxxxxxxx\">]><a>&b;</a>";
        for body in [
            &*deep,
            &long,
            bomb,
            "<a>&b;</a>",
            "<a>",
            "<a></b>",
            "</a>",
            "<a>&#0;</a>",
            "<a",
            "<a>&#xd800;</a>",
        ] {
            assert_eq!(values(body.as_bytes(), &["a"]), None, "{body:.40}");
        }
        assert_eq!(values(b"\xff", &["a"]), None);
    }
}
