//! The syntax of metadata: `key = value`, `section { ... }`, and comments from `#` to the end of the line.
//!
//! A value is a number, a string in quotes with `\` before a quote, or an array of these. Values borrow from the text.

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Section(Section<'a>),
    Array(Vec<Value<'a>>),
    /// A string as it stands between its quotes.
    String(&'a [u8]),
    Number(i64),
    /// A number with a fraction, or a word.
    Other(&'a [u8]),
}

/// Keys and their values in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Section<'a>(pub Vec<(&'a [u8], Value<'a>)>);

impl<'a> Section<'a> {
    /// Parses a text. What follows its first zero is ignored.
    pub fn parse(text: &'a [u8]) -> Result<Self, String> {
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let mut parser = Parser { text: &text[..end], at: 0, values: 0 };
        parser.section(0).map_err(|reason| format!("{reason} at byte {}", parser.at))
    }

    pub fn value(&self, key: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| value)
    }

    pub fn section(&self, key: &str) -> Option<&Self> {
        match self.value(key)? {
            Value::Section(section) => Some(section),
            _ => None,
        }
    }

    pub fn string(&self, key: &str) -> Option<&'a [u8]> {
        self.value(key)?.as_string()
    }

    /// Returns a number that is not negative.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.as_number()
    }

    pub fn array(&self, key: &str) -> &[Value<'a>] {
        match self.value(key) {
            Some(Value::Array(values)) => values,
            Some(value) => std::slice::from_ref(value),
            None => &[],
        }
    }

    /// Returns the sections in this one with their names.
    pub fn sections(&self) -> impl Iterator<Item = (&'a [u8], &Self)> {
        self.0.iter().filter_map(|(name, value)| match value {
            Value::Section(section) => Some((*name, section)),
            _ => None,
        })
    }
}

impl<'a> Value<'a> {
    pub fn as_string(&self) -> Option<&'a [u8]> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    /// Number of values so far.
    values: usize,
}

impl<'a> Parser<'a> {
    /// Parses keys up to the end of the text, or the brace of a section that is not the outermost.
    fn section(&mut self, depth: usize) -> Result<Section<'a>, &'static str> {
        if depth > MAX_DEPTH {
            return Err("too many sections within each other");
        }
        let mut section = Section::default();
        loop {
            match (self.next(), depth) {
                (None, 0) => return Ok(section),
                (None, _) => return Err("a section does not end"),
                (Some(b'}'), 1..) => {
                    self.at += 1;
                    return Ok(section);
                }
                (Some(_), _) => {}
            }
            let key = self.key()?;
            let value = match self.next() {
                Some(b'{') => {
                    self.at += 1;
                    Value::Section(self.section(depth + 1)?)
                }
                Some(b'=') => {
                    self.at += 1;
                    self.value()?
                }
                _ => return Err("no value"),
            };
            self.count()?;
            section.0.push((key, value));
        }
    }

    fn count(&mut self) -> Result<(), &'static str> {
        self.values += 1;
        if self.values > MAX_VALUES { Err("too many values") } else { Ok(()) }
    }

    /// Skips space and comments, and returns the byte after them.
    fn next(&mut self) -> Option<u8> {
        loop {
            match *self.text.get(self.at)? {
                b'#' => {
                    let rest = &self.text[self.at..];
                    let line = rest.iter().position(|byte| *byte == b'\n');
                    self.at += line.unwrap_or(rest.len());
                }
                byte if byte.is_ascii_whitespace() => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn key(&mut self) -> Result<&'a [u8], &'static str> {
        match self.next() {
            Some(b'"') => self.string(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<&'a [u8], &'static str> {
        let rest = &self.text[self.at..];
        let is_end =
            |byte: &u8| byte.is_ascii_whitespace() || b"{}[]=,#\"'".contains(byte) || *byte < b' ';
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        if length == 0 {
            return Err("an unexpected byte");
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// Parses a string in quotes of either kind. Only a double quote can be escaped.
    fn string(&mut self) -> Result<&'a [u8], &'static str> {
        let quote = self.text[self.at];
        self.at += 1;
        let start = self.at;
        while let Some(byte) = self.text.get(self.at) {
            match *byte {
                b'\\' if quote == b'"' => self.at += 1,
                byte if byte == quote => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at - 1]);
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.text.len();
        Err("a string does not end")
    }

    fn value(&mut self) -> Result<Value<'a>, &'static str> {
        if self.next() != Some(b'[') {
            return self.scalar();
        }
        self.at += 1;
        let mut values = Vec::new();
        loop {
            if self.next() == Some(b']') {
                self.at += 1;
                return Ok(Value::Array(values));
            }
            values.push(self.scalar()?);
            self.count()?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b']') => {}
                _ => return Err("an array does not end"),
            }
        }
    }

    fn scalar(&mut self) -> Result<Value<'a>, &'static str> {
        match self.next() {
            Some(b'"' | b'\'') => self.string().map(Value::String),
            _ => {
                let word = self.word()?;
                let number = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
                Ok(number.map_or(Value::Other(word), Value::Number))
            }
        }
    }
}

/// Maximum depth of sections. The depth of metadata is 4. Limit in sections.
const MAX_DEPTH: usize = 8;

/// Maximum number of values of a text, each of which takes some 50 bytes of memory.
/// Limit in values.
const MAX_VALUES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_of_every_kind() {
        let text = b"# comment { \nvg-0 {\n id=\"a\\\"b\" n = -3 f=1.5 # x\n flags = [] \"q k\" = ['s', 7,]\n\
                     s { t { } } }\nversion = 1 \0 } garbage";
        let root = Section::parse(text).unwrap();
        let group = root.section("vg-0").unwrap();
        assert_eq!(group.string("id"), Some(&b"a\\\"b"[..]));
        assert_eq!(group.value("n"), Some(&Value::Number(-3)));
        assert_eq!((group.number("n"), group.number("id")), (None, None));
        assert_eq!(group.value("f"), Some(&Value::Other(b"1.5")));
        assert!(group.array("flags").is_empty() && group.array("none").is_empty());
        assert_eq!(group.array("q k"), [Value::String(b"s"), Value::Number(7)]);
        assert_eq!(group.sections().count(), 1);
        assert!(group.section("s").unwrap().section("t").unwrap().0.is_empty());
        assert_eq!(root.number("version"), Some(1));
    }

    #[test]
    fn invalid_texts() {
        for text in ["a", "a =", "a { b = 1", "}", "a = \"x", "a = [1", "a = [1 2]", "= 1", "a = }"]
        {
            assert!(Section::parse(text.as_bytes()).is_err(), "{text}");
        }
        let nested = |depth| "a {".repeat(depth) + &"}".repeat(depth);
        assert!(Section::parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(Section::parse(nested(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(Section::parse("a {".repeat(1 << 20).as_bytes()).is_err());
        let many = format!("a = [{}]", "1,".repeat(MAX_VALUES));
        assert!(Section::parse(many.as_bytes()).unwrap_err().starts_with("too many values"));
    }

    /// Writes a section as LVM does.
    fn write(section: &Section<'_>, text: &mut Vec<u8>) {
        for (key, value) in &section.0 {
            text.extend_from_slice(key);
            match value {
                Value::Section(inner) => {
                    text.extend_from_slice(b" {\n");
                    write(inner, text);
                    text.extend_from_slice(b"}\n");
                    continue;
                }
                Value::Array(values) => {
                    text.extend_from_slice(b" = [");
                    for (index, value) in values.iter().enumerate() {
                        text.extend_from_slice(if index > 0 { b", " } else { b"" });
                        scalar(value, text);
                    }
                    text.push(b']');
                }
                value => {
                    text.extend_from_slice(b" = ");
                    scalar(value, text);
                }
            }
            text.extend_from_slice(b"\t# comment\n");
        }
    }

    fn scalar(value: &Value<'_>, text: &mut Vec<u8>) {
        match value {
            Value::Number(number) => text.extend_from_slice(number.to_string().as_bytes()),
            Value::String(string) => {
                text.push(b'"');
                text.extend_from_slice(string);
                text.push(b'"');
            }
            Value::Other(word) => text.extend_from_slice(word),
            Value::Array(_) | Value::Section(_) => {}
        }
    }

    fn any_scalar() -> impl Strategy<Value = Value<'static>> {
        let string = "([a-z0-9 {}#=\\[\\],']|\\\\\"|\\\\\\\\){0,12}";
        prop_oneof![
            any::<i64>().prop_map(Value::Number),
            string.prop_map(|text| Value::String(text.into_bytes().leak())),
            Just(Value::Other(b"1.5")),
        ]
    }

    fn any_section() -> impl Strategy<Value = Section<'static>> {
        let key = || "[a-zA-Z_][a-zA-Z0-9_.+-]{0,8}".prop_map(|key| &*key.into_bytes().leak());
        let flat = prop_oneof![
            any_scalar(),
            proptest::collection::vec(any_scalar(), 0..4).prop_map(Value::Array),
        ];
        let value = flat.prop_recursive(4, 40, 5, move |inner| {
            let pairs = proptest::collection::vec((key(), inner), 0..5);
            pairs.prop_map(|pairs| Value::Section(Section(pairs)))
        });
        let key = "[a-z]{1,5}".prop_map(|key| &*key.into_bytes().leak());
        proptest::collection::vec((key, value), 0..5).prop_map(Section)
    }

    proptest! {
        #[test]
        fn what_is_written_is_parsed(section in any_section()) {
            let mut text = Vec::new();
            write(&section, &mut text);
            prop_assert_eq!(Section::parse(&text).unwrap(), section);
        }

        #[test]
        fn any_text_ends(text in "[a {}\\[\\]=,#\"'\\\\\n0-9\u{0}-]{0,200}") {
            let _ = Section::parse(text.as_bytes());
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Section::parse(&bytes);
        }
    }
}
