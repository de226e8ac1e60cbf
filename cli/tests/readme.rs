//! Every command that the README shows is run, and must say what the README says it says.
//!
//! `LOOKALIKE_README=write cargo test -p lookalike-cli --test readme` puts what they say now into the README.
#![allow(missing_docs)]

mod common;
#[path = "common/http.rs"]
mod http;

use std::{fs, path::Path};

use common::Place;
use http::Server;

const FENCE: &str = "```console\n";

#[test]
fn the_readme_says_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let place = Place::new();
    let mut now = String::new();
    let mut rest = readme.as_str();
    let (mut commands, mut server) = (0, None);
    while let Some((before, block)) = rest.split_once(FENCE) {
        let (block, after) = block.split_once("```").unwrap();
        now += before;
        now += FENCE;
        for line in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
            commands += 1;
            let said = match (line.strip_prefix("curl "), line.strip_suffix(" &")) {
                (Some(asked), _) => ask(server.as_ref().unwrap(), asked),
                (_, Some(served)) => serve(&place, served, &mut server),
                _ => run(&place, line),
            };
            now += &format!("$ {line}\n{said}");
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

/// Starts a service, at a port of its own: the README's may be taken.
fn serve(place: &Place, line: &str, server: &mut Option<Server>) -> String {
    let started =
        server.insert(Server::start(place, line.strip_prefix("lookalike serve ").unwrap()));
    let log = started.log();
    let said = log.lines().find(|line| line.contains(", at http://")).unwrap();
    said.replace(&started.address.to_string(), "127.0.0.1:8080") + "\n"
}

/// What `curl -s localhost:8080/PATH --json 'BODY'` or without a body says. Times differ, and are shown as one.
fn ask(server: &Server, line: &str) -> String {
    let asked = line.strip_prefix("-s localhost:8080").unwrap();
    let answer = match asked.split_once(" --json '") {
        Some((path, body)) => server.post_as(path, http::JSON, body.strip_suffix('\'').unwrap()),
        None => server.get(asked),
    };
    assert_eq!(answer.status, 200, "{line}\n{}", answer.text());
    const TIME: &str = "\"took_ms\":";
    let mut pieces = answer.text().split(TIME);
    let mut said = pieces.next().unwrap().to_owned();
    for piece in pieces {
        said += TIME;
        said += "0.2";
        said += piece.trim_start_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
    }
    said + "\n"
}
