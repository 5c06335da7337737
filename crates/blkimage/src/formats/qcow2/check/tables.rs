//! The L2 tables of an image, each with the number of L1 entries that name it.
//!
//! Snapshots share most tables with the current state, and a hostile image may name one table from millions of entries. Each
//! table is interpreted once, and counts as often as it is named.

/// An L2 table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct L2Table {
    pub offset: u64,
    /// Index of one of the L1 entries in its table, one of the current state if there is any.
    pub index: u32,
    /// Number of entries that name it in the L1 table of the current state.
    pub active: u32,
    /// Number of entries that name it in tables of snapshots.
    pub inactive: u32,
}

impl L2Table {
    pub fn references(&self) -> u64 {
        u64::from(self.active) + u64::from(self.inactive)
    }
}

/// A set of tables.
#[derive(Default)]
pub(super) struct L2Tables {
    tables: Vec<L2Table>,
    is_full: bool,
}

impl L2Tables {
    pub fn add(&mut self, table: L2Table) {
        if self.is_full {
            return;
        }
        if self.tables.len() == MAX_TABLES {
            self.merge();
            self.is_full = self.tables.len() > MAX_TABLES / 4 * 3;
        }
        self.tables.push(table);
    }

    /// Returns all tables, by their offsets. `None` if there were too many.
    pub fn into_tables(mut self) -> Option<Vec<L2Table>> {
        self.merge();
        if self.is_full { None } else { Some(self.tables) }
    }

    fn merge(&mut self) {
        self.tables.sort_unstable_by_key(|table| table.offset);
        self.tables.dedup_by(|next, table| {
            if next.offset != table.offset {
                return false;
            }
            if table.active == 0 && next.active > 0 {
                table.index = next.index;
            }
            table.active = table.active.saturating_add(next.active);
            table.inactive = table.inactive.saturating_add(next.inactive);
            true
        });
    }
}

/// Maximum number of different L2 tables that a check looks at, twice as many as the L1 table of the current state can name.
/// Limit in tables.
const MAX_TABLES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_merged() {
        let mut tables = L2Tables::default();
        for (offset, index, active, inactive) in
            [(9, 3, 0, 2), (5, 1, 1, 0), (9, 4, 1, 0), (9, 5, 0, u32::MAX), (7, 0, 0, 1)]
        {
            tables.add(L2Table { offset, index, active, inactive });
        }
        let tables = tables.into_tables().unwrap();
        let offsets: Vec<_> = tables.iter().map(|table| table.offset).collect();
        assert_eq!(offsets, [5, 7, 9]);
        assert_eq!(tables[2], L2Table { offset: 9, index: 4, active: 1, inactive: u32::MAX });
    }
}
