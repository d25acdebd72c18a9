//! Rows and groups come out of files as they were put in, whatever chunks, filters, indexes and versions.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod host;

use std::sync::atomic::Ordering;

use forebay_core::{
    Context, DType, DataPipe as _, FlatMap, Items as _, Options as _, Result, Sample, Value, View,
};
use forebay_hdf5::{File, Hdf5Pieces, Hdf5PiecesOptions, Hdf5Rows};
use host::{FETCHED, file, path, sample};

/// Rows in the files (see `data/make.py`).
const ROWS: u64 = 23;
const FILES: [&str; 2] = ["earliest.h5", "latest.h5"];

fn cut(options: &str) -> Hdf5Pieces {
    Hdf5Pieces::new(Hdf5PiecesOptions::parse(options).unwrap()).unwrap()
}

/// What a flat map makes of a sample. After each sample the stream is saved, and made again from there.
fn all(pipe: &impl FlatMap, sample: &Sample, cx: &Context) -> Result<Vec<Sample>> {
    let mut items = pipe.open(sample.clone(), cx)?;
    let mut made = Vec::new();
    while let Some(one) = items.next(cx)? {
        made.push(one);
        let state = items.state()?;
        items = pipe.open(sample.clone(), cx)?;
        items.restore(&state, cx)?;
    }
    Ok(made)
}

/// The samples of a file, by both pipes.
fn rows(options: &str, sample: &Sample) -> Result<Vec<Sample>> {
    let host = host::host();
    let cx = &host.context();
    let reader = Hdf5Rows::new(forebay_core::NoOptions).unwrap();
    let mut made = Vec::new();
    for piece in all(&cut(options), sample, cx)? {
        made.extend(all(&reader, &piece, cx)?);
    }
    Ok(made)
}

/// The image of a row: what `make.py` counts.
fn image(row: u64) -> Vec<u64> {
    (row * 30..row * 30 + 30).map(|at| at % 65521).collect()
}

fn integers(value: &Value) -> Vec<u64> {
    let tensor = value.as_tensor().unwrap();
    let size = tensor.dtype().size();
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all: u64, byte| all << 8 | u64::from(*byte));
    tensor.data().chunks_exact(size).map(number).collect()
}

#[test]
fn every_filter_and_index_gives_the_rows_that_were_put_in() {
    for name in FILES {
        for field in ["image", "tiles", "plain", "big", "zstd", "blosc", "bitshuffle", "lz4", "bzip2"] {
            for piece_bytes in [1, 500, 1 << 20] {
                let options = format!(r#"{{"datasets": "{field}", "piece_bytes": {piece_bytes}}}"#);
                let rows = rows(&options, &sample(file(name))).unwrap();
                assert_eq!(rows.len() as u64, ROWS, "{name} {field}");
                for (row, sample) in rows.iter().enumerate() {
                    let value = sample.get(field).unwrap();
                    assert_eq!(value.as_tensor().unwrap().shape(), [6, 5]);
                    assert_eq!(integers(value), image(row as u64), "{name} {field} row {row}");
                }
            }
        }
    }
}

#[test]
fn any_rows_can_be_read_by_themselves() {
    for name in FILES {
        let file = File::open(file(name).into()).unwrap();
        for field in ["image", "tiles", "plain", "big"] {
            let dataset = file.dataset(field).unwrap();
            for start in 0..ROWS {
                for end in start..=ROWS {
                    let wanted: Vec<_> = (start..end).flat_map(image).collect();
                    let found = dataset.read_rows(start..end).unwrap();
                    assert_eq!(integers(&found), wanted, "{name} {field} {start}..{end}");
                }
            }
            assert!(dataset.read_rows(0..ROWS + 1).is_err());
        }
    }
}

#[test]
fn values_have_the_types_they_had() {
    for name in FILES {
        let options =
            r#"{"datasets": ["label", "truth", "text", "fixed", "ragged", "record", "complex", "sparse"]}"#;
        let rows = rows(options, &sample(file(name))).unwrap();
        for (row, sample) in rows.iter().enumerate() {
            let get = |field: &str| sample.get(field).unwrap();
            assert_eq!(get("split").as_str(), Some("train"), "the other fields go on");
            assert!(sample.get("bytes").is_none() && sample.get("piece").is_none());
            assert_eq!(
                (get("label").as_i64(), get("label").dtype()),
                (Some(row as i64 * 3 - 7), Some(DType::I64))
            );
            assert_eq!(get("truth").view(), View::Bool(row % 3 == 0));
            assert_eq!(get("text").as_str(), Some(&*format!("row {row} ä")));
            assert_eq!(get("fixed").as_str(), Some(&*format!("r{row}")));
            let ragged = get("ragged").as_tensor().unwrap();
            assert_eq!((ragged.dtype(), ragged.shape()), (DType::F32, [row as i64 % 4].as_slice()));
            let floats: Vec<_> = (0..row % 4).map(|at| u64::from(((at + row) as f32).to_bits())).collect();
            assert_eq!(integers(get("ragged")), floats);
            let View::Struct(record) = get("record").view() else { panic!("{:?}", get("record")) };
            assert_eq!(record.get("id").unwrap().as_i64(), Some(row as i64));
            assert_eq!(record.get("name").unwrap().as_str(), Some(&*format!("n{row}")));
            let at = [row * 2, row * 2 + 1].map(|at| (at as f64 / 4.0).to_bits());
            assert_eq!(integers(record.get("at").unwrap()), at);
            let complex = [row as f64, (ROWS - 1) as f64 - row as f64].map(f64::to_bits);
            assert_eq!(integers(get("complex")), complex);
            let sparse: f32 = if row == 9 { 9.0 } else { 1.5 };
            assert_eq!(integers(get("sparse")), [u64::from(sparse.to_bits()); 4]);
        }
        assert_eq!(rows.len() as u64, ROWS);
    }
}

#[test]
fn keys_and_uids_are_the_rows_own() {
    let rows = rows(r#"{"datasets": "label", "piece_bytes": 100}"#, &sample(file("latest.h5"))).unwrap();
    let mut uids: Vec<_> = rows.iter().map(Sample::uid).collect();
    assert_eq!(rows[5].key().to_string(), "file.h5#5");
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len() as u64, ROWS);
}

#[test]
fn a_group_is_a_sample() {
    for (options, fields) in [
        (r#"{"by": "group"}"#, vec!["split", "caption", "pixels"]),
        (r#"{"by": "group", "datasets": ["pixels"]}"#, vec!["split", "pixels"]),
    ] {
        let groups = rows(options, &sample(file("groups.h5"))).unwrap();
        assert_eq!(groups.len(), 40);
        for (nth, group) in groups.iter().enumerate() {
            let names: Vec<_> = group.fields().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, fields);
            assert_eq!(group.key().to_string(), format!("file.h5!/sample_{nth:03}"));
            let pixels = group.get("pixels").unwrap();
            assert_eq!(pixels.as_tensor().unwrap().shape(), [nth as i64 % 3 + 1, 2]);
            assert!(integers(pixels).iter().all(|&pixel| pixel == nth as u64));
        }
    }
}

#[test]
fn of_a_file_far_away_only_what_is_needed_is_fetched() {
    let name = path("earliest.h5");
    let mut far = sample(file("earliest.h5"));
    far.take("bytes");
    far.set("path", format!("far://{name}").as_str());
    FETCHED.store(0, Ordering::Relaxed);
    let found = rows(r#"{"datasets": ["image", "text"]}"#, &far).unwrap();
    assert_eq!(found.len() as u64, ROWS);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(row, sample)| integers(sample.get("image").unwrap()) == image(row as u64))
    );
    assert!(FETCHED.load(Ordering::Relaxed) > 0);
}

#[test]
fn attributes_and_links_are_read() {
    for name in FILES {
        let file = File::open(file(name).into()).unwrap();
        let root = file.root().unwrap();
        let attributes = root.attributes().unwrap();
        assert_eq!((attributes.len(), attributes[0].value.as_str()), (1, Some("a file for tests")));
        let names = file.dataset("label").unwrap().attributes().unwrap();
        assert_eq!(integers(&names[0].value), [1, 2, 3]);
        assert_eq!(file.dataset("link").unwrap().path(), "/image");
        let error = file.dataset("lable").err().unwrap().to_string();
        assert!(error.contains("no `lable`") && error.contains("label"), "{error}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    for (options, said) in [
        (r#"{"datasets": "image", "root": "label"}"#, "expected a group"),
        (r#"{"by": "group", "root": "nothing"}"#, "no `nothing`"),
    ] {
        let error = rows(options, &sample(file("latest.h5"))).err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
    }
    let none = rows("{}", &sample(b"no HDF5 here"[..].to_vec().into())).err().unwrap().to_string();
    assert!(none.contains("no HDF5 file"), "{none}");
    let groups = rows(r#"{"by": "row"}"#, &sample(file("groups.h5"))).err().unwrap().to_string();
    assert!(groups.contains("other rows than") && groups.contains("and 7 more"), "{groups}");
}

/// The pieces of a file that has a path, and the rows that each says it has.
fn pieces(name: &str, options: &str, cx: &Context, most: usize) -> Vec<(Sample, std::ops::Range<u64>)> {
    let mut far = sample(file(name));
    far.take("bytes");
    far.set("path", format!("far://{}", path(name)).as_str());
    let mut items = cut(options).open(far, cx).unwrap();
    let mut found = Vec::new();
    while let Some(piece) = items.next(cx).unwrap().filter(|_| found.len() < most) {
        let (start, end) = piece.key().name.split_once("..").unwrap();
        let rows = start.parse().unwrap()..end.parse().unwrap();
        found.push((piece, rows));
    }
    found
}

#[test]
fn pieces_of_small_rows_are_no_larger_in_memory_than_those_of_large_ones() {
    let host = host::host();
    let cx = &host.context();
    let found = pieces("many.h5", "{}", cx, 2);
    let reader = Hdf5Rows::new(forebay_core::NoOptions).unwrap();
    for (piece, rows) in found {
        // A sample takes more than 100 bytes, whatever its row does.
        assert!((1000..40_000).contains(&(rows.end - rows.start)), "{rows:?}");
        let mut items = reader.open(piece, cx).unwrap();
        for row in rows {
            let sample = items.next(cx).unwrap().unwrap();
            assert_eq!((sample.key().index, sample.get("x").and_then(Value::as_i64)), (row, Some(0)));
        }
        assert!(items.next(cx).unwrap().is_none());
    }
}

#[test]
fn chunks_of_very_many_rows_are_cut_over_pieces_and_give_the_same_rows() {
    let host = host::host();
    let cx = &host.context();
    let found = pieces("tall.h5", "{}", cx, usize::MAX);
    assert!(found.len() > 8, "{} pieces", found.len());
    let reader = Hdf5Rows::new(forebay_core::NoOptions).unwrap();
    let mut next = 0;
    // From behind too: then whole chunks are unpacked that were not kept.
    for (piece, rows) in found.iter().chain(found.iter().rev()) {
        assert!(
            rows.end - rows.start < 40_000 && rows.start / 120_000 == (rows.end - 1) / 120_000,
            "{rows:?}"
        );
        let mut items = reader.open(piece.clone(), cx).unwrap();
        for row in rows.clone() {
            let sample = items.next(cx).unwrap().unwrap();
            for field in ["pair", "half"] {
                assert_eq!(
                    integers(sample.get(field).unwrap()),
                    [row % 251, row % 7],
                    "{field} of row {row}"
                );
            }
            next += 1;
        }
    }
    assert_eq!(next, 500_000);
    // In a file that is given as bytes nobody would find again what was unpacked.
    let whole = rows_of_pieces(&cut("{}"), &sample(file("tall.h5")), cx);
    assert_eq!(whole, [120_000, 120_000, 10_000]);
    // A place that was saved is one where a piece begins.
    let mut far = sample(file("tall.h5"));
    far.take("bytes");
    far.set("path", format!("far://{}", path("tall.h5")).as_str());
    let lens: Vec<_> = found.iter().map(|(_, rows)| rows.end - rows.start).collect();
    assert_eq!(rows_of_pieces(&cut("{}"), &far, cx), lens);
}

/// How many rows the pieces of a sample have.
fn rows_of_pieces(pipe: &Hdf5Pieces, sample: &Sample, cx: &Context) -> Vec<u64> {
    let mut items = pipe.open(sample.clone(), cx).unwrap();
    let mut found = Vec::new();
    while let Some(piece) = items.next(cx).unwrap() {
        let (start, end) = piece.key().name.split_once("..").unwrap();
        found.push(end.parse::<u64>().unwrap() - start.parse::<u64>().unwrap());
        let state = items.state().unwrap();
        items = pipe.open(sample.clone(), cx).unwrap();
        items.restore(&state, cx).unwrap();
    }
    found
}

#[test]
fn a_piece_has_few_large_groups() {
    let host = host::host();
    let cx = &host.context();
    // Of 2 MB each.
    assert_eq!(rows_of_pieces(&cut("{}"), &sample(file("wide.h5")), cx), [2, 2, 2]);
    assert_eq!(rows_of_pieces(&cut(r#"{"piece_bytes": 20000000}"#), &sample(file("wide.h5")), cx), [6]);
    assert_eq!(rows("{}", &sample(file("wide.h5"))).unwrap().len(), 6);
}
