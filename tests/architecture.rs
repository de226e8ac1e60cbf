//! The pages that describe the project must not point at what is not there.

use std::{fs, path::Path};

/// Paths in backquotes: something with a slash, or a file at the top, by its suffix.
fn paths(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| {
        let top = [".md", ".toml", ".rs"].iter().any(|suffix| text.ends_with(suffix));
        (text.contains('/') || top) && !text.contains([' ', '*', ':', '<', '$', '('])
    };
    quoted.filter(is_path).collect()
}

#[test]
fn every_path_in_the_map_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let mut room = root.to_owned();
    let mut checked = 0;
    for path in paths(&page.replace("```", "")) {
        // A bare file name belongs to the room named last.
        let full = if path.contains('/') { root.join(path) } else { room.join(path) };
        assert!(full.exists(), "ARCHITECTURE.md names `{path}`, which is not there");
        if full.is_dir() {
            room = full;
        }
        checked += 1;
    }
    assert!(checked > 30, "only {checked} paths were found");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| root.join(name))
        .into_iter()
        .chain(docs.filter(|page| page.is_file()))
    {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            let there = target.contains("://") || page.parent().unwrap().join(target).exists();
            assert!(there, "{} links to `{link}`", page.display());
        }
    }
}
