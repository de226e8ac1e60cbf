//! Every command that the README shows is run, and must say what the README says it says.
//!
//! `LOOKALIKE_README=write cargo test -p lookalike-cli --test readme` puts what they say now into the README.
#![allow(missing_docs)]

mod common;

use std::{fs, path::Path};

use common::Place;

const FENCE: &str = "```console\n";

#[test]
fn the_readme_says_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let place = Place::new();
    let mut now = String::new();
    let mut rest = readme.as_str();
    let mut commands = 0;
    while let Some((before, block)) = rest.split_once(FENCE) {
        let (block, after) = block.split_once("```").unwrap();
        now += before;
        now += FENCE;
        for line in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
            commands += 1;
            now += &format!("$ {line}\n{}", run(&place, line));
        }
        now += "```";
        rest = after;
    }
    now += rest;
    assert!(commands > 10);
    if std::env::var_os("LOOKALIKE_README").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let same = now.lines().zip(readme.lines()).take_while(|(now, readme)| now == readme).count();
    assert!(now == readme, "README.md, line {}: {:?}", same + 1, now.lines().nth(same));
}

/// What a command says: results, then talk. It must not fail.
fn run(place: &Place, line: &str) -> String {
    let arguments =
        line.strip_prefix("lookalike ").or(line.strip_prefix("cargo run --release -- "));
    let said = place.run(arguments.unwrap_or_else(|| panic!("not a command of ours: {line}")));
    assert_eq!(said.code, 0, "{line}\n{}", said.err);
    said.out + &said.err
}
