//! What becomes of a file whose datasets nobody named: rows or groups, and nothing is left out without a word.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod host;

use forebay_core::{
    Context, DataPipe as _, FlatMap, Items as _, NoOptions, Options as _, Sample, Value, View,
};
use forebay_hdf5::{Hdf5Pieces, Hdf5PiecesOptions, Hdf5Rows};
use host::{file, host, sample};

/// What a flat map makes of a sample, and what it says is lost. After each answer the stream is saved, and made again from there.
fn told(pipe: &impl FlatMap, sample: &Sample, cx: &Context) -> (Vec<Sample>, Vec<String>) {
    let mut items = pipe.open(sample.clone(), cx).unwrap();
    let (mut made, mut lost) = (Vec::new(), Vec::new());
    loop {
        match items.next(cx) {
            Ok(Some(one)) => made.push(one),
            Ok(None) => return (made, lost),
            Err(error) => {
                assert!(items.goes_on());
                lost.push(error.to_string());
            }
        }
        let state = items.state().unwrap();
        items = pipe.open(sample.clone(), cx).unwrap();
        items.restore(&state, cx).unwrap();
    }
}

/// The samples of a file by both pipes, and what is lost.
fn read(name: &str, options: &str) -> (Vec<Sample>, Vec<String>) {
    let host = host();
    let cx = &host.context();
    let cutter = Hdf5Pieces::new(Hdf5PiecesOptions::parse(options).unwrap()).unwrap();
    let reader = Hdf5Rows::new(NoOptions).unwrap();
    let (pieces, mut lost) = told(&cutter, &sample(file(name)), cx);
    let mut made = Vec::new();
    for piece in &pieces {
        let (samples, more) = told(&reader, piece, cx);
        made.extend(samples);
        lost.extend(more);
    }
    (made, lost)
}

fn names(sample: &Sample) -> Vec<&str> {
    sample.fields().map(|(name, _)| name.as_str()).collect()
}

fn shape(sample: &Sample, field: &str) -> Vec<i64> {
    sample.get(field).and_then(Value::as_tensor).unwrap().shape().to_vec()
}

#[test]
fn groups_that_hold_the_same_are_samples() {
    let (samples, lost) = read("groups.h5", "{}");
    assert_eq!((samples.len(), lost), (40, Vec::new()));
    for (nth, sample) in samples.iter().enumerate() {
        assert_eq!(names(sample), ["split", "caption", "pixels"]);
        assert_eq!(sample.get("caption").and_then(Value::as_str), Some(&*format!("picture {nth}")));
        assert_eq!(shape(sample, "pixels"), [nth as i64 % 3 + 1, 2]);
    }
}

#[test]
fn they_are_also_where_their_group_is_alone_and_what_is_no_group_is_told() {
    let (samples, lost) = read("below.h5", "{}");
    assert_eq!(samples.len(), 3);
    for (nth, sample) in samples.iter().enumerate() {
        assert_eq!(sample.key().to_string(), format!("file.h5!/{nth:04}"));
        let about = if nth == 1 { vec![] } else { vec!["about/note"] };
        assert_eq!(names(sample), [&["split"], &about[..], &["image", "label"]].concat());
        assert_eq!(sample.get("label").and_then(Value::as_i64), Some(nth as i64));
        assert_eq!(shape(sample, "image"), [4, 5]);
    }
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].contains("`names` is no group"), "{lost:?}");
}

#[test]
fn groups_whose_datasets_are_rows_together_are_fields() {
    let (samples, lost) = read("cameras.h5", "{}");
    assert_eq!((samples.len(), lost), (4, Vec::new()));
    assert_eq!(names(&samples[0]), ["split", "action", "left/image", "right/image"]);
    assert_eq!(shape(&samples[3], "left/image"), [2, 2]);
}

#[test]
fn single_elements_are_fields_of_every_row_and_the_rest_is_told() {
    for options in ["{}", r#"{"by": "row", "piece_bytes": 1}"#] {
        let (samples, lost) = read("mixed.h5", options);
        assert_eq!(samples.len(), 6);
        for (row, sample) in samples.iter().enumerate() {
            assert_eq!(names(sample), ["split", "image", "label", "note", "nothing", "rate"]);
            assert_eq!(shape(sample, "image"), [4, 3]);
            assert_eq!(sample.get("label").and_then(Value::as_i64), Some(row as i64 * 2));
            assert_eq!(sample.get("note").and_then(Value::as_str), Some("of all rows"));
            assert_eq!(sample.get("rate").map(Value::view), Some(View::Float(0.5)));
            assert_eq!(sample.get("nothing"), Some(&Value::NULL));
        }
        for parts in [
            &["/elsewhere", "`/image` in another file, `none.h5`"][..],
            &["/more/packed", "32013 (zfp)"],
            &["/names` has 2", "`/more/axis` has 5", "the 6 of `/image`", "datasets"],
            &["/outside", "in other files"],
            &["/virtual", "in other datasets"],
        ] {
            let named = |error: &&String| parts.iter().all(|part| error.contains(part));
            assert_eq!(lost.iter().filter(named).count(), 1, "{parts:?} in {lost:#?}");
        }
        assert_eq!(lost.len(), 5, "{lost:#?}");
    }
}

#[test]
fn what_is_named_comes_or_is_an_error() {
    let (samples, lost) = read("mixed.h5", r#"{"datasets": ["label", "note"]}"#);
    assert_eq!((samples.len(), lost), (6, Vec::new()));
    assert_eq!(names(&samples[5]), ["split", "label", "note"]);
    let (samples, _) = read("mixed.h5", r#"{"datasets": ["note", "rate"]}"#);
    assert_eq!(samples.len(), 1, "a file of single elements is one sample");
    let host = host();
    for (named, said) in [
        (r#"["label", "names"]"#, "differ in rows"),
        (r#"["label", "virtual"]"#, "a virtual dataset"),
        (r#"["label", "more/packed"]"#, "zfp"),
        (r#"["label", "elsewhere"]"#, "another file"),
    ] {
        let options = Hdf5PiecesOptions::parse(&format!(r#"{{"datasets": {named}}}"#)).unwrap();
        let cutter = Hdf5Pieces::new(options).unwrap();
        let error = cutter.open(sample(file("mixed.h5")), &host.context()).err().unwrap();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_dataset_takes_the_place_of_a_field() {
    let host = host();
    let cx = &host.context();
    let mut sample = sample(file("mixed.h5"));
    sample.set("label", "of the folder");
    let options = Hdf5PiecesOptions::parse(r#"{"datasets": "label"}"#).unwrap();
    let (pieces, _) = told(&Hdf5Pieces::new(options).unwrap(), &sample, cx);
    let (rows, _) = told(&Hdf5Rows::new(NoOptions).unwrap(), &pieces[0], cx);
    assert_eq!(names(&rows[1]), ["split", "label"]);
    assert_eq!(rows[1].get("label").and_then(Value::as_i64), Some(2));
}
