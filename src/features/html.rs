//! The text of HTML.

/// The text of an HTML page.
pub fn text_of_html(html: &str) -> String {
    html.to_owned()
}
