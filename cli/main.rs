//! The `lookalike` program.

mod input;

fn main() {}
