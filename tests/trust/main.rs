//! Which plugins are loaded under which trust, and that what was locked is what is loaded, in workers too.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod commands;

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use forebay_loader::{
    ErrorKind, Executor, Loader, Registry, Search, Trust,
    registry::{Lock, LockState, Refusal, Why},
};
use forebay_tests::{
    PLUGINS, Setting, build, copy, error_of, folder_of, line, plugin_file, plugins, run, within_deadline,
};

/// The most lines of anything that says why.
const LINES: usize = 10;

fn look(folder: &Path, trust: Trust) -> Registry {
    Registry::new(Search::nowhere().first(folder).trust(trust)).unwrap()
}

fn names(registry: &Registry) -> Vec<&str> {
    registry.plugins().iter().map(|record| record.manifest().name.as_str()).collect()
}

fn library(folder: &Path, plugin: &str) -> PathBuf {
    folder.join(plugin_file(plugin).file_name().unwrap())
}

/// A lock of what is in a folder.
fn locked(folder: &Path) -> Trust {
    let file = folder.join("plugins.lock");
    let lock = Lock::of(&file, look(folder, Trust::Open).plugins()).unwrap();
    fs::write(&file, lock.to_toml().unwrap()).unwrap();
    format!("locked:{}", file.display()).parse().unwrap()
}

#[track_caller]
fn refused(registry: &Registry) -> &Refusal {
    let [refusal] = registry.refusals() else { panic!("{:?}", registry.refusals()) };
    assert_eq!(refusal.why, Why::Distrusted, "{refusal:?}");
    assert!(refusal.reason.message().starts_with("not trusted: "), "{refusal:?}");
    assert!(refusal.reason.to_string().lines().count() <= LINES, "{refusal:?}");
    refusal
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Puts other bytes in the place of a file, as an installer does: a new file under the old name.
fn swap(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    let beside = file.with_extension("new");
    fs::write(&beside, bytes).unwrap();
    fs::rename(&beside, file).unwrap();
}

/// Replaces a text in a library by one of the same length.
fn replace(bytes: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
}

/// Another build: its manifest says the same of its pipes, and its entry is not where it says.
#[expect(clippy::ptr_arg, reason = "one of many changes, of which some make the file longer")]
fn without_entry(bytes: &mut Vec<u8>) {
    replace(bytes, "\"forebay_plugin_forebay_pipes\"", "\"forebay_plugin_forebay_pixes\"");
}

#[test]
fn trust_is_written_as_it_is_read() {
    for text in ["open", "allow:forebay-json", "allow:forebay-json,/opt/plugins,./here.so"] {
        assert_eq!(text.parse::<Trust>().unwrap().to_string(), text);
    }
    for bad in ["", "opne", "allow:", "allow: ,", "locked:", "locked", "closed:x"] {
        let error = bad.parse::<Trust>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{bad}: {error}");
    }
    let error = "locked:/nowhere/plugins.lock".parse::<Trust>().unwrap_err();
    assert_eq!((error.kind(), error.get("lock")), (ErrorKind::Io, Some("/nowhere/plugins.lock")), "{error}");
}

#[test]
fn names_files_and_folders_are_allowed_and_nothing_else() {
    let folder = folder_of(&["forebay-json", "forebay-pipes"]);
    let other = folder_of(&["forebay-tar"]);
    symlink(library(other.path(), "forebay-tar"), library(folder.path(), "forebay-tar")).unwrap();
    let (path, away) = (folder.path().display(), other.path().display());
    let json = library(folder.path(), "forebay-json");
    for (items, taken) in [
        ("forebay-pipes".to_owned(), &["forebay-pipes"][..]),
        (json.display().to_string(), &["forebay-json"]),
        (format!("{},forebay-pipes", json.display()), &["forebay-json", "forebay-pipes"]),
        // A link that leads out of the folder leads out of what is allowed.
        (format!("{path}"), &["forebay-json", "forebay-pipes"]),
        (format!("{path},{away}"), &["forebay-json", "forebay-pipes", "forebay-tar"]),
        (format!("{path}/nothing/.."), &[]),
        (format!("{path}/nothing"), &[]),
        // Neither the beginning of a name, nor that of a file's.
        ("forebay".into(), &[]),
        (format!("{path}/lib"), &[]),
        ("json".into(), &[]),
    ] {
        let registry = look(folder.path(), format!("allow:{items}").parse().unwrap());
        assert_eq!(names(&registry), taken, "{items}");
        assert_eq!(registry.refusals().len(), 3 - taken.len(), "{items}");
    }
    // A way that begins in an allowed folder and leaves it.
    let way = folder.path().join("..").join(other.path().file_name().unwrap());
    let registry = look(&way, format!("allow:{path}").parse().unwrap());
    assert!(registry.plugins().is_empty());
    let refusal = refused(&registry);
    assert!(refusal.reason.message().contains("forebay-tar"), "{refusal:?}");
    let error = line("untar x").problems(&registry).pop().unwrap().to_string();
    assert!(error.contains("libforebay_tar.so refused: not trusted: "), "{error}");
}

#[test]
fn among_many_places_the_refusal_is_still_told() {
    let folder = folder_of(&["forebay-tar"]);
    let places = (0..20).map(|number| format!("/nowhere/{number}"));
    let search = places.fold(Search::nowhere().first(folder.path()), |search, place| search.first(place));
    let registry = Registry::new(search.trust("allow:nobody".parse().unwrap())).unwrap();
    let looked = registry.looked_at();
    assert!(looked.contains("refused: not trusted") && looked.contains("and 16 more"), "{looked}");
    assert!(looked.lines().count() <= LINES, "{looked}");
}

#[test]
fn what_anyone_may_write_is_refused_in_every_mode() {
    let folder = folder_of(&["forebay-pipes"]);
    let (path, file) = (folder.path(), library(folder.path(), "forebay-pipes"));
    let modes = || [Trust::Open, "allow:forebay-pipes".parse().unwrap(), locked(path)];
    let trusts = modes();
    mode(&file, 0o646);
    for trust in &trusts {
        for place in [path, &file] {
            let registry = look(place, trust.clone());
            let refusal = refused(&registry);
            let says = format!("chmod o-w {}", file.display());
            assert!(refusal.path == file && refusal.reason.message().contains(&says), "{refusal:?}");
        }
    }
    mode(&file, 0o664);
    let away = tempfile::tempdir().unwrap();
    let link = away.path().join("liblink.so");
    symlink(&file, &link).unwrap();
    for trust in &trusts {
        mode(path, 0o777);
        for place in [path, &file, &link] {
            let registry = look(place, trust.clone());
            let refusal = refused(&registry);
            let says = format!("chmod o-w {}", path.display());
            assert!(refusal.reason.message().contains(&says), "{trust}: {refusal:?}");
        }
        // As /tmp is: what was found there may be anyone's, what was named is whose it was.
        mode(path, 0o1777);
        assert!(refused(&look(path, trust.clone())).reason.message().contains("chmod o-w"));
        assert_eq!(names(&look(&file, trust.clone())), ["forebay-pipes"]);
        assert_eq!(names(&look(&link, trust.clone())), ["forebay-pipes"]);
        // Refused by one way, and taken by another.
        let both = Search::nowhere().first(&link).first(path).trust(trust.clone());
        let both = Registry::new(both).unwrap();
        assert_eq!((names(&both), both.refusals().len()), (vec!["forebay-pipes"], 1));
        let both = Search::nowhere().first(&file).first(path).trust(trust.clone());
        assert!(Registry::new(both).unwrap().refusals().is_empty());
        mode(path, 0o700);
        assert_eq!(names(&look(path, trust.clone())), ["forebay-pipes"]);
    }
}

#[test]
fn what_lies_below_a_folder_that_anyone_may_write_to_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("a/b");
    fs::create_dir_all(&folder).unwrap();
    let file = copy(&plugin_file("forebay-pipes"), &folder);
    let link = above.path().join("link");
    symlink(&folder, &link).unwrap();
    for place in [&folder, &file, &link] {
        mode(above.path(), 0o777);
        let registry = look(place, Trust::Open);
        let reason = &refused(&registry).reason;
        assert!(reason.message().contains(&format!("chmod o-w {}", above.path().display())), "{reason}");
        mode(above.path(), 0o1777);
        assert_eq!(names(&look(place, Trust::Open)), ["forebay-pipes"]);
    }
}

#[test]
fn what_is_locked_is_loaded_from_the_bytes_that_were_compared() {
    let folder = folder_of(&["forebay-pipes"]);
    let file = library(folder.path(), "forebay-pipes");
    let registry = look(folder.path(), locked(folder.path()));
    let [record] = registry.plugins() else { panic!("{}", registry.looked_at()) };
    assert_eq!(record.path(), Some(&*file));
    let hash = look(folder.path(), Trust::Open).plugins()[0].hash().unwrap();
    swap(&file, without_entry);
    // Loaded now, after the swap: the new file would have no such symbol.
    let error = error_of(&line("range 9"), &look(folder.path(), Trust::Open), Setting::INLINE).0;
    assert!(error.message().contains("has no symbol"), "{error}");
    let samples = |registry: &Registry| {
        run(&mut build(&line("range 9"), registry, Setting::INLINE).unwrap(), 0).unwrap().samples
    };
    assert_eq!(samples(&registry), 9);
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains("memfd:libforebay_pipes.so"), "{maps}");
    assert_eq!(record.hash().unwrap(), hash, "of what was loaded");
    fs::remove_file(&file).unwrap();
    assert_eq!(samples(&registry.clone()), 9);
}

/// A plugin that was loaded from a descriptor is found again by glibc under the descriptor's number, whatever that is by then.
#[test]
fn libraries_of_registries_that_are_gone_are_not_taken_for_others() {
    for (plugin, graph) in [
        ("forebay-pipes", "range 9"),
        ("forebay-rogue", "rogue_source count=9"),
        ("forebay-pipes", "range 9"),
        ("forebay-rogue", "rogue_source count=9"),
    ] {
        let folder = folder_of(&[plugin]);
        let registry = look(folder.path(), locked(folder.path()));
        let mut loader = build(&line(graph), &registry, Setting::INLINE).unwrap();
        assert_eq!(run(&mut loader, 0).unwrap().samples, 9, "{plugin}");
    }
}

#[test]
fn what_is_not_as_it_was_locked_is_refused() {
    let folder = folder_of(&["forebay-json", "forebay-pipes"]);
    let (json, pipes) = (library(folder.path(), "forebay-json"), library(folder.path(), "forebay-pipes"));
    let trust = locked(folder.path());
    assert_eq!(names(&look(folder.path(), trust.clone())), ["forebay-json", "forebay-pipes"]);
    let version = env!("CARGO_PKG_VERSION");
    let newer = format!("9{}", &version[1..]);
    let (from, to) = (format!("\"version\":\"{version}\""), format!("\"version\":\"{newer}\""));
    let original = fs::read(&pipes).unwrap();
    type Change<'a> = Box<dyn Fn(&mut Vec<u8>) + 'a>;
    let changes: [(Change<'_>, &[&str]); 3] = [
        (Box::new(|bytes| bytes.push(0)), &["its SHA-256 is ", " locks ", "plugins.lock"]),
        (Box::new(without_entry), &["its SHA-256 is "]),
        (Box::new(|bytes| replace(bytes, &from, &to)), &["its version is ", &newer, version]),
    ];
    for (change, says) in changes {
        swap(&pipes, change);
        let registry = look(folder.path(), trust.clone());
        let refusal = refused(&registry);
        assert!(says.iter().all(|part| refusal.reason.message().contains(part)), "{refusal:?}");
        assert!(refusal.path == pipes && names(&registry) == ["forebay-json"]);
        let error = line("range 5").problems(&registry).pop().unwrap().to_string();
        assert!(error.contains("unknown pipe `range`") && error.contains(says[0]), "{error}");
        fs::write(&pipes, &original).unwrap();
    }
    // One that the lock does not know is not read as a whole, and one that is as it was is taken again.
    copy(&plugin_file("forebay-tar"), folder.path());
    fs::remove_file(&json).unwrap();
    let registry = look(folder.path(), trust.clone());
    assert!(
        refused(&registry).reason.message().contains("forebay-tar is not in "),
        "{registry_refusals:?}",
        registry_refusals = registry.refusals()
    );
    assert_eq!(names(&registry), ["forebay-pipes"]);

    let Trust::Locked(lock) = trust else { panic!("{trust}") };
    swap(&pipes, |bytes| bytes.push(0));
    let verdicts = lock.verify(&look(folder.path(), Trust::Open)).unwrap();
    let states: Vec<_> = verdicts.iter().map(|verdict| (&*verdict.plugin, verdict.state)).collect();
    let expected = [
        ("forebay-pipes", LockState::Changed),
        ("forebay-tar", LockState::NotLocked),
        ("forebay-json", LockState::Missing),
    ];
    assert_eq!(states, expected);
    assert!(verdicts.iter().all(|verdict| !verdict.reason.is_empty()), "{verdicts:?}");
}

#[test]
fn what_cannot_be_loaded_is_told_with_the_name_of_the_file() {
    let folder = folder_of(&["forebay-pipes"]);
    let file = library(folder.path(), "forebay-pipes");
    // For another kind of machine, so that the system's own loader refuses it.
    swap(&file, |bytes| bytes[18] = 0xb7);
    let registry = look(folder.path(), locked(folder.path()));
    let error = error_of(&line("range 9"), &registry, Setting::INLINE).0;
    assert!(error.message().contains(&format!("cannot be loaded: {}", file.display())), "{error}");
    assert!(!error.to_string().contains("/proc/self/fd"), "{error}");
}

#[test]
fn a_file_that_is_no_lock_is_refused() {
    let folder = folder_of(&["forebay-pipes"]);
    let file = folder.path().join("plugins.lock");
    locked(folder.path());
    let good = fs::read_to_string(&file).unwrap();
    let hash = &good[good.find("sha256 = \"").unwrap() + 10..][..64];
    for (text, says) in [
        ("{".to_owned(), "not a lock of plugins"),
        (String::new(), "missing field `version`"),
        (
            good.replace("version = 1\n", "version = 2\n"),
            "found a lock of version 2, this host reads version 1",
        ),
        (good.replace("abi =", "api ="), "unknown field `api`"),
        (good.replace(hash, &hash[1..]), "expected 64 lower-case hex digits"),
        (good.replace(hash, &hash.to_uppercase().replace('0', "F")), "expected 64 lower-case hex digits"),
        (good.clone() + &good[good.find("[[plugin]]").unwrap()..], "it lists forebay-pipes twice"),
        ("#".repeat(2 << 20), "at most 1048576"),
    ] {
        fs::write(&file, &text).unwrap();
        let error = Lock::read(&file).unwrap_err();
        assert!(error.message().contains(says), "{says}: {error}");
        assert_eq!(error.get("lock"), file.to_str(), "{error}");
    }
    fs::write(&file, &good).unwrap();
    let lock = Lock::read(&file).unwrap();
    assert_eq!((lock.plugins().len(), lock.plugins()[0].sha256.as_str()), (1, hash));
    mode(&file, 0o666);
    let error = Lock::read(&file).unwrap_err();
    assert!(error.message().contains("anyone may write to it"), "{error}");
    assert!(Lock::read(folder.path()).unwrap_err().message().contains("not a regular file"));
}

#[test]
fn workers_load_what_the_loader_trusts_and_nothing_else() {
    within_deadline(|| {
        let graph = line("range 600 | increment | shuffle 50 on=process | batch 7");
        let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
        let folder = folder_of(&["forebay-pipes", "forebay-rogue"]);
        let file = library(folder.path(), "forebay-pipes");
        let open = look(folder.path(), Trust::Open);
        let truth = run(&mut build(&graph, &open, Setting::INLINE).unwrap(), 0).unwrap();
        let allowed = "allow:forebay-pipes,forebay-rogue".parse().unwrap();
        for trust in [Trust::Open, allowed, locked(folder.path())] {
            let registry = look(folder.path(), trust);
            let mut loader = build(&graph, &registry, setting).unwrap();
            assert_eq!(run(&mut loader, 0).unwrap(), truth, "{}", registry.trust());
            loader.finish().unwrap();
        }

        let registries = [look(folder.path(), locked(folder.path())), open];
        swap(&file, |bytes| bytes.push(0));
        for (registry, says) in registries
            .iter()
            .zip(["not trusted: its SHA-256 is ", "the plugin's file changed since the loader found it"])
        {
            let (error, samples) = error_of(&graph, registry, setting);
            assert!(error.message().contains(says), "{error}");
            assert_eq!((error.get("file"), samples), (file.to_str(), 0), "{error}");
            // Inline nothing was swapped: it is loaded already, or sealed.
            let mut inline = build(&graph, registry, Setting::INLINE).unwrap();
            assert_eq!(run(&mut inline, 0).unwrap(), truth);
        }
        // A file whose bytes are as locked may be anyone's by then all the same.
        let registry = look(folder.path(), locked(folder.path()));
        mode(&file, 0o666);
        let (error, _) = error_of(&graph, &registry, setting);
        assert!(error.message().contains("anyone may write to it"), "{error}");
    });
}

#[test]
fn plugins_that_are_linked_in_need_no_trust() {
    let registry = Registry::linked(forebay_pipes::register).unwrap();
    assert_eq!(names(&registry), ["forebay-pipes"]);
    assert_eq!(registry.plugins()[0].sha256().unwrap(), None);
    let mut loader = Loader::builder(line("range 9")).build(&registry).unwrap();
    assert_eq!(run(&mut loader, 0).unwrap().samples, 9);
    let lock = Lock::of(Path::new("plugins.lock"), registry.plugins()).unwrap();
    assert!(lock.plugins().is_empty() && lock.verify(&registry).unwrap().is_empty());
}

#[test]
fn the_workspace_can_be_locked() {
    let search = |trust| {
        let files = PLUGINS.iter().rev().map(|name| plugin_file(name));
        files.fold(Search::nowhere(), |search, file| search.first(file)).trust(trust)
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plugins.lock");
    let open = Registry::new(search(Trust::Open)).unwrap();
    fs::write(&file, Lock::of(&file, open.plugins()).unwrap().to_toml().unwrap()).unwrap();
    let lock = Lock::read(&file).unwrap();
    let registry = Registry::new(search(Trust::Locked(lock.clone()))).unwrap();
    assert_eq!(names(&registry), *PLUGINS, "{} in {}", registry.looked_at(), plugins().display());
    for record in registry.plugins() {
        record.check().unwrap();
    }
    assert!(lock.verify(&open).unwrap().iter().all(|verdict| verdict.state == LockState::AsLocked));
}
