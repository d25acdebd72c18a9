//! Whether the plugin keeps what plugins promise, with a repository made here; and a run over two revisions.

use std::{fs, path::Path, process::Command};

use forebay_loader::{Graph, Loader, Registry, Result};
use forebay_testkit::conformance::Kit;
use tempfile::TempDir;

fn git(folder: &Path, args: &[&str]) {
    let who = ["user.name=A", "user.email=a@example.org", "init.defaultBranch=main", "commit.gpgsign=false"];
    let settings = who.iter().flat_map(|setting| ["-c", setting]);
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(settings).args(args);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A repository with two revisions: `v1`, and one behind it.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    git(folder.path(), &["init", "-q"]);
    write("labels/a b.txt", "heron");
    write("labels/deep/ü.txt", "grebe");
    write("README", "Birds.");
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-q", "-m", "one"]);
    git(folder.path(), &["tag", "v1"]);
    write("labels/a b.txt", "grey heron");
    git(folder.path(), &["commit", "-q", "-a", "-m", "two"]);
    folder
}

fn url(repository: &TempDir, rest: &str) -> String {
    format!("git://{}@{rest}", repository.path().display())
}

fn registry() -> Registry {
    Registry::linked(|registrar| {
        git_plugin::register(registrar)?;
        forebay_files::register(registrar)
    })
    .unwrap()
}

fn texts(pattern: &str) -> Result<Vec<(String, String)>> {
    let graph = Graph::from_line(&format!("files '{pattern}' | read"))?;
    let mut loader = Loader::builder(graph).build(&registry())?;
    let text = |sample: Result<forebay_loader::Sample>| {
        let sample = sample?;
        let bytes = sample.get("bytes").unwrap().as_bytes().unwrap();
        Ok((sample.key().to_string(), String::from_utf8(bytes.to_vec()).unwrap()))
    };
    loader.epoch(0).map(text).collect()
}

#[test]
fn conforms() {
    let repository = repository();
    Kit::linked(git_plugin::register).data(url(&repository, "v1/labels/a b.txt")).test("conforms");
}

#[test]
fn each_revision_has_its_own_bytes() {
    let repository = repository();
    for (revision, heron) in [("v1", "heron"), ("main", "grey heron"), ("HEAD~1", "heron")] {
        let found = texts(&url(&repository, &format!("{revision}/labels/**/*.txt"))).unwrap();
        let at = |name: &str| url(&repository, &format!("{revision}/labels/{name}"));
        assert_eq!(found, [(at("a b.txt"), heron.to_owned()), (at("deep/ü.txt"), "grebe".to_owned())]);
    }
    assert_eq!(
        registry().store("git").unwrap().list(&url(&repository, "v1")).unwrap(),
        [(url(&repository, "v1/README"), false), (url(&repository, "v1/labels"), true)]
    );
}

#[test]
fn what_is_wrong_is_told_in_gits_words() {
    let repository = repository();
    for (rest, says) in [
        ("v2/README", "invalid object name 'v2'"),
        ("v1/labels/gull.txt", "path 'labels/gull.txt' does not exist in 'v1'"),
        ("v1/labels", "bad file"),
    ] {
        let url = url(&repository, rest);
        let error = texts(&url).unwrap_err();
        assert!(error.message().contains(says), "{error}");
        assert_eq!(error.get("file"), Some(url.as_str()), "{error}");
    }
    let error = texts("git:///nowhere-17@main/a").unwrap_err();
    assert!(error.message().contains("No such file or directory"), "{error}");
}
