//! Which files come together, and what is refused.

use forebay_core::{Buffer, Options, random::Rng};

use super::*;
use crate::testing::{Drive, check, check_resume, errors, sample};

fn group() -> Group {
    group_by("extension").unwrap()
}

fn group_by(by: &str) -> Result<Group> {
    Group::new(GroupOptions { by: by.to_owned(), ..GroupOptions::parse("{}").unwrap() })
}

/// Each sample as its uid and the names of its fields.
fn grouped(by: &str, paths: &[&str]) -> Vec<String> {
    let files: Vec<_> = paths.iter().zip(0..).map(|(path, uid)| file(uid, path)).collect();
    let group = || group_by(by).unwrap();
    check_resume(group, &files);
    let names = |sample: &Sample| {
        let names = sample.fields().skip(1).map(|(name, _)| name.as_str().to_owned());
        format!("{}: {}", sample.uid(), names.collect::<Vec<_>>().join(" "))
    };
    check(group, &files).iter().map(names).collect()
}

fn file(uid: u64, path: &str) -> Sample {
    let bytes = Value::from(Buffer::from(path.as_bytes().to_vec()));
    sample(uid, &[("label", 1_i64.into()), ("path", path.into()), ("bytes", bytes)])
}

#[test]
fn files_of_one_name_are_one_sample() {
    let paths = [
        "a/1.jpg",
        "a/1.json",
        "a/2.JPG",
        "b/2.json",
        "b/2.json.gz",
        "b/2.x/3",
        "b/2.x/4.txt",
        "b/4.txt",
        "b/4.TXT",
        ".x",
        "Shot 1.2.png",
        "Shot 1.3.png",
    ];
    let files: Vec<_> = paths.iter().zip(0..).map(|(path, uid)| file(uid, path)).collect();
    let out = check(group, &files);
    let fields = |sample: &Sample| {
        sample.fields().map(|(name, _)| name.as_str().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let expected = [
        (0, "label jpg json"),
        (2, "label jpg"),
        (3, "label json json.gz"),
        (5, "label bytes"),
        (6, "label txt"),
        (7, "label txt"),
        (8, "label txt"),
        (9, "label bytes"),
        (10, "label png"),
        (11, "label png"),
    ];
    let found: Vec<_> = out.iter().map(|sample| (sample.uid(), fields(sample))).collect();
    assert_eq!(found, expected.map(|(uid, fields)| (uid, fields.to_owned())));
    assert_eq!(out[0].get("json").and_then(Value::as_bytes).unwrap()[..], *b"a/1.json");
    check_resume(group, &files);
}

#[test]
fn what_is_no_file_goes_on_as_it_is() {
    let others = [
        file(1, "a/1.jpg"),
        sample(2, &[("path", "a/1.json".into())]),
        sample(3, &[("value", 3_i64.into())]),
        file(4, "a/1.json"),
    ];
    let out = check(group, &others);
    assert_eq!(out[1..3], others[1..3]);
    assert_eq!(out.len(), 4);
}

#[test]
fn a_file_that_is_called_as_another_field_is_an_error() {
    for room in [1, 3] {
        let files =
            ["1.jpg", "1.label", "1.json", "2.x", "2.LABEL"].map(|path| file(path.len() as u64, path));
        let mut drive = Drive::new(group(), &files, room);
        let found = errors(&mut drive);
        assert_eq!(found.iter().map(|error| error.get("field")).collect::<Vec<_>>(), [Some("label"); 2]);
        let names = |sample: &Sample| sample.schema().names().iter().skip(1).map(Str::to_string).collect();
        let given: Vec<Vec<String>> = drive.out().iter().map(names).collect();
        assert_eq!(given, [["jpg"], ["json"], ["x"]]);
    }
}

#[test]
fn files_of_one_folder_are_one_sample() {
    let paths = ["a/b/image.jpg", "a/b/Mask.png", "a/c/image.jpg", "a/image.jpg", "image.jpg", "x"];
    assert_eq!(
        grouped("folder", &paths),
        ["0: image.jpg Mask.png", "2: image.jpg", "3: image.jpg", "4: image.jpg x"]
    );
}

#[test]
fn a_template_says_what_the_files_share_and_the_field() {
    let paths =
        ["a/1_x_image.png", "a/1_x_mask.png", "b/1_x_mask.png", "b/readme.txt", "b/1_x_y.png", "c_.png"];
    assert_eq!(
        grouped("{key}_{field}.png", &paths),
        ["0: image mask", "2: mask", "3: path bytes", "4: y", "5: path bytes"]
    );
    let paths = ["d/image/1.png", "d/mask/1.png", "d/mask/2.PNG", "e/mask/2.png"];
    assert_eq!(grouped("{field}/{key}.png", &paths), ["0: image mask", "2: path bytes", "3: mask"]);
    let paths = ["a-1.jpg", "a-2.json.gz", "b-1.jpg", "b-2"];
    assert_eq!(grouped("{key}-1.jpg", &paths), ["0: jpg", "1: path bytes", "2: jpg", "3: path bytes"]);
    assert_eq!(grouped(r"^(?<key>.)-", &paths), ["0: jpg json.gz", "2: jpg bytes"]);
    assert_eq!(grouped(r"(?<field>\d).*?(?<key>[a-z]+)$", &paths), ["0: 1", "1: 2", "2: 1", "3: path bytes"]);
}

#[test]
fn what_is_no_pattern_is_refused() {
    for by in
        ["stem", "", "(?<key>", "{key}{key}", "{key}_{name}", "{key}{", "{key}{field", "{key}{field}{field}"]
    {
        assert_eq!(group_by(by).unwrap_err().get("option"), Some("by"), "{by}");
    }
}

/// What a file is a part of, and the field that it becomes.
type Part = Option<(String, String)>;

/// The samples, written out plainly: a file goes to the sample before it, if it is a part of the same and its field is free.
fn reference(files: &[(Sample, Part)]) -> Vec<Sample> {
    let mut out: Vec<(Option<&str>, Sample)> = Vec::new();
    for (file, part) in files {
        let Some((stem, field)) = part else {
            out.push((None, file.clone()));
            continue;
        };
        let bytes = file.get("bytes").unwrap().clone();
        match out.last_mut() {
            Some((Some(last), whole)) if last == stem && whole.get(field).is_none() => {
                whole.set(field, bytes)
            }
            _ => out.push((Some(stem), sample(file.uid(), &[("label", 1_i64.into()), (field, bytes)]))),
        }
    }
    out.into_iter().map(|(_, sample)| sample).collect()
}

/// A path of few folders, stems and endings, so that neighbours often belong together, and the part that it is by this rule.
fn random_path(rng: &mut Rng, by: &str) -> (String, Part) {
    let mut one = |of: &[&'static str]| of[rng.below(of.len() as u64) as usize];
    let (folder, stem) = (one(&["", "a/", "a/b/"]), one(&["1", "2", "x_1"]));
    if by == "{key}_{field}.png" {
        let (field, end) = (one(&["image", "mask", "m.x"]), one(&[".png", ".png", ".png", ".PNG"]));
        let part = (end == ".png").then(|| (format!("{folder}{stem}"), field.to_owned()));
        return (format!("{folder}{stem}_{field}{end}"), part);
    }
    let ending = one(&["", ".jpg", ".JPG", ".json", ".json.gz", ".gz", ".tar.ZST"]);
    let name = format!("{stem}{ending}");
    let extension = ending.get(1..).unwrap_or("bytes").to_lowercase();
    let part = if by == "folder" {
        (folder.to_owned(), name.clone())
    } else {
        (format!("{folder}{stem}"), extension)
    };
    (format!("{folder}{name}"), Some(part))
}

#[test]
fn equals_the_definition_whatever_comes() {
    let mut rng = Rng::new(37, 0);
    for by in ["extension", "folder", "{key}_{field}.png"] {
        for round in 0..25 {
            let files: Vec<_> = (0..round % 13)
                .map(|uid| {
                    let (path, part) = random_path(&mut rng, by);
                    match rng.below(10) {
                        0 => (sample(uid, &[("path", path.as_str().into())]), None),
                        1 => (sample(uid, &[("bytes", Value::from(Buffer::from(vec![1])))]), None),
                        _ => (file(uid, &path), part),
                    }
                })
                .collect();
            let input: Vec<_> = files.iter().map(|(file, _)| file.clone()).collect();
            let make = || group_by(by).unwrap();
            assert_eq!(check(make, &input), reference(&files), "{by}");
            check_resume(make, &input);
        }
    }
}

#[test]
fn what_a_url_asks_of_its_server_is_no_part_of_a_field() {
    let paths = ["https://h/1.jpg?sig=a.b", "https://h/1.json?sig=c", "https://h/2.jpg?x"];
    assert_eq!(grouped("extension", &paths), ["0: jpg json", "2: jpg"]);
}
