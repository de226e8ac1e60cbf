//! The exhaustive scan: every row against every query. The oracle of every test, and an index in its own right.

/// Every row against every query.
#[derive(Debug, Clone, Copy)]
pub struct Scan;
