//! The description of a field.

/// A row of a table of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name of the field, with the path to it: `a.b` is a field of an object in `a`, `a[].b` of one in a list.
    pub name: String,
    /// Its type in JSON: `integer or null`.
    pub kind: String,
    /// The meaning, in Markdown.
    pub text: String,
    /// When the field is absent. Empty if it never is.
    pub absent: String,
}

impl Row {
    /// Formats the rows as a table in Markdown.
    #[must_use]
    pub fn table(rows: &[Self]) -> String {
        let head = "| field | type | meaning | absent |\n|---|---|---|---|\n".to_owned();
        rows.iter().fold(head, |table, Self { name, kind, text, absent }| {
            let space = if absent.is_empty() { "" } else { " " };
            table + &format!("| `{name}` | {kind} | {text} | {absent}{space}|\n")
        })
    }
}
