//! Tables on a terminal.

use std::fmt;

/// Rows of equal length under a heading. The first column is text, the others
/// are numbers or short words.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heading: &[&str]) -> Self {
        Self {
            rows: vec![heading.iter().map(ToString::to_string).collect()],
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self
                .rows
                .iter()
                .filter_map(|row: &Vec<String>| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| {
                let number = column > 0 && cell.ends_with(|last: char| last.is_ascii_digit());
                if number {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new(&["op", "ns", "result"]);
        table.row(["load", "1.5", "good"].map(str::to_owned));
        table.row(["x", "120.5", "-"].map(str::to_owned));
        assert_eq!(
            table.to_string(),
            "op    ns     result\nload    1.5  good\nx     120.5  -\n"
        );
    }
}
