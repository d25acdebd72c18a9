//! Rules of the house that no compiler checks. Each check says what it found, and fails when it found nothing to
//! look at. ARCHITECTURE.md and docs/inside have the reasons.

mod arrows;
mod faults;
mod layers;
mod lexer;
mod names;
mod pages;
mod prose;
mod repo;
mod rooms;
mod sources;
mod tables;
mod way;

use repo::Repo;

/// What a check saw: how many things it looked at, and what is wrong with them.
struct Report {
    looked_at: usize,
    problems: Vec<String>,
}

fn looked_at(looked_at: usize, problems: Vec<String>) -> Report {
    Report { looked_at, problems }
}

type Check = fn(&Repo) -> Report;

const CHECKS: [(&str, Check); 21] = [
    ("crates depend only downwards", arrows::crates_depend_only_downwards),
    ("abi_stable is only in the abi", arrows::abi_stable_is_only_in_the_abi),
    ("only bundled links plugins into the loader", arrows::only_bundled_links_plugins_into_the_loader),
    ("the loader names no plugin crate", arrows::the_loader_names_no_plugin_crate),
    ("the map shows exactly the rooms", rooms::the_map_shows_exactly_the_rooms),
    ("the map is short and pages are narrow", pages::the_map_is_short_and_pages_are_narrow),
    ("sentences are short", prose::sentences_are_short),
    ("words are known outside", prose::words_are_known_outside),
    ("every plugin is furnished", rooms::every_plugin_is_furnished),
    ("tables list every plugin", tables::tables_list_every_plugin),
    ("lints and licence are the workspace's", rooms::every_crate_takes_lints_and_licence_from_the_workspace),
    ("unsafe is where the design has it", sources::unsafe_is_where_the_design_has_it),
    ("the loader names no format and no pipe", sources::the_loader_names_no_format_and_no_pipe),
    ("crates of the loader are small", layers::crates_of_the_loader_are_small_and_one_thing),
    ("no import of the loader runs back up", layers::no_import_of_the_loader_runs_back_up),
    ("types of the loader have names of their own", names::types_of_the_loader_have_names_of_their_own),
    ("the way of a sample is short and true", way::the_way_of_a_sample_is_short_and_true),
    ("every file says what lives in it", sources::every_file_says_what_lives_in_it),
    ("no test is ignored", sources::no_test_is_ignored),
    ("files are short", sources::files_are_short),
    ("functions fit on a screen", sources::functions_fit_on_a_screen),
];

fn problems(repo: &Repo) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, check) in CHECKS {
        let report = check(repo);
        problems.extend(report.problems.into_iter().map(|problem| format!("{name}: {problem}")));
        if report.looked_at == 0 {
            problems.push(format!("{name}: found nothing to look at"));
        }
    }
    problems
}

#[test]
fn the_house_is_in_order() {
    let root = forebay_tests::root();
    if std::env::var(tables::VARIABLE).is_ok_and(|value| value == "write") {
        tables::write(&root).unwrap();
    }
    let problems = problems(&Repo::read(&root).unwrap());
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
