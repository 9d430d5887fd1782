//! Figures that others measured, as rows of CSV without quotes.

/// The items of each setting together, as they came; `same` tells whether two are of one.
pub(super) fn by_setting<T>(
    items: impl Iterator<Item = T>,
    same: impl Fn(&T, &T) -> bool,
) -> Vec<Vec<T>> {
    let mut settings: Vec<Vec<T>> = Vec::new();
    for item in items {
        match settings.iter_mut().find(|setting| same(&setting[0], &item)) {
            Some(setting) => setting.push(item),
            None => settings.push(vec![item]),
        }
    }
    settings
}

/// A row, with the names of its columns.
#[derive(Clone, Debug)]
pub(super) struct Row {
    columns: &'static str,
    values: Vec<&'static str>,
}

impl Row {
    /// The rows below the first line, which names the columns.
    pub(super) fn all(rows: &'static str) -> impl Iterator<Item = Self> {
        let mut lines = rows.lines();
        let columns = lines.next().unwrap_or_default();
        lines.map(move |line| Self { columns, values: line.split(',').collect() })
    }

    /// What stands in a column; nothing if there is none of that name.
    pub(super) fn text(&self, column: &str) -> &'static str {
        let at = self.columns.split(',').position(|c| c == column);
        at.and_then(|at| self.values.get(at).copied()).unwrap_or_default()
    }

    /// The number in a column; NaN if there is none.
    pub(super) fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or(f64::NAN)
    }
}
