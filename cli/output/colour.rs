//! Colours, where they are wanted: on a terminal, and not where `NO_COLOR` is set.

use std::io::IsTerminal;

/// What a piece of text is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    /// In the first text only.
    Removed,
    /// In the second text only.
    Added,
    /// A heading.
    Strong,
}

/// Paints text if standard output shows colours.
pub(crate) fn colour() -> impl Fn(Paint, &str) -> String {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let wanted = std::io::stdout().is_terminal() && !no_colour;
    move |paint, text| match (wanted, paint) {
        (false, _) => text.to_owned(),
        (_, Paint::Removed) => format!("\x1b[31m{text}\x1b[0m"),
        (_, Paint::Added) => format!("\x1b[32m{text}\x1b[0m"),
        (_, Paint::Strong) => format!("\x1b[1m{text}\x1b[0m"),
    }
}
