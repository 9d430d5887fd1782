//! Results as columns.

use link::columns::Value;

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Column {
    /// Whole numbers.
    Count(Vec<u64>),
    /// Real numbers; `None` where there is no value.
    Real(Vec<Option<f64>>),
    /// Text.
    Text(Vec<String>),
}

impl Column {
    /// How many rows it has.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Count(v) => v.len(),
            Self::Real(v) => v.len(),
            Self::Text(v) => v.len(),
        }
    }

    /// The column's first row alone; empty if there is none.
    pub fn first(&self) -> Self {
        match self {
            Self::Count(v) => Self::Count(v.iter().take(1).copied().collect()),
            Self::Real(v) => Self::Real(v.iter().take(1).copied().collect()),
            Self::Text(v) => Self::Text(v.iter().take(1).cloned().collect()),
        }
    }
}

/// Named columns of one length.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Table {
    columns: Vec<(String, Column)>,
}

impl Table {
    /// Adds a column.
    pub fn push(&mut self, name: &str, column: Column) {
        self.columns.push((name.into(), column));
    }

    /// The columns in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    /// The column of that name, if there is one.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns().find(|(n, _)| *n == name).map(|(_, column)| column)
    }

    /// The values of a column of real numbers; empty if it is none.
    pub fn real(&self, name: &str) -> &[Option<f64>] {
        match self.column(name) {
            Some(Column::Real(values)) => values,
            _ => &[],
        }
    }

    /// The value of a row of a numeric column.
    pub fn number(&self, name: &str, row: usize) -> Option<f64> {
        match self.column(name)? {
            Column::Count(v) => v.get(row).map(|&n| n as f64),
            Column::Real(v) => v.get(row).copied().flatten(),
            Column::Text(_) => None,
        }
    }

    /// Begins a row: each column has to be given its value in order.
    pub(crate) fn row(&mut self) -> Row<'_> {
        Row { columns: self.columns.iter_mut() }
    }
}

/// A row being written.
pub(crate) struct Row<'a> {
    columns: std::slice::IterMut<'a, (String, Column)>,
}

impl Row<'_> {
    pub(crate) fn count(&mut self, value: u64) {
        match self.columns.next() {
            Some((_, Column::Count(v))) => v.push(value),
            other => debug_assert!(false, "a count for {other:?}"),
        }
    }

    pub(crate) fn real(&mut self, value: Option<f64>) {
        match self.columns.next() {
            Some((_, Column::Real(v))) => v.push(value),
            other => debug_assert!(false, "a real for {other:?}"),
        }
    }

    pub(crate) fn value(&mut self, value: Value) {
        match value {
            Value::Count(count) => self.count(count),
            Value::Real(real) => self.real(Some(real)),
        }
    }

    pub(crate) fn text(&mut self, value: &str) {
        match self.columns.next() {
            Some((_, Column::Text(v))) => v.push(value.into()),
            other => debug_assert!(false, "a text for {other:?}"),
        }
    }
}
