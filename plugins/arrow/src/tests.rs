//! Tests of the pipes together: files written here, cut into pieces and read.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray, record_batch, types,
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use forebay_core::{
    Blob, Buffer, DType, DataPipe as _, Error, Key, Limits, Options as _, Result, Sample, Value, View,
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use crate::{
    ReadColumns, ReadColumnsOptions, ReadOptions, ReadRows, RowGroups, RowGroupsOptions, decode,
    document::PIECE_ROWS,
    export, import,
    piece::{Cut, FIELD},
    read,
};

const LIMIT: u64 = Limits::DEFAULT.bytes;

/// Columns of every kind that has a rule of its own.
pub(crate) fn birds(from: i32, count: i32) -> RecordBatch {
    let numbers = || from..from + count;
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(numbers()));
    let gaps: ArrayRef =
        Arc::new(Int64Array::from_iter(numbers().map(|at| (at % 3 != 0).then_some(i64::from(at)))));
    let names: ArrayRef = Arc::new(StringArray::from_iter(
        numbers().map(|at| (at % 5 != 0).then(|| format!("a bird called {at}"))),
    ));
    let flags: ArrayRef = Arc::new(BooleanArray::from_iter(numbers().map(|at| Some(at % 2 == 0))));
    let items = |at: i32| {
        (at % 4 != 0).then(|| (0..at % 4).map(|item| (item != 2).then_some(item)).collect::<Vec<_>>())
    };
    let lists: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<types::Int32Type, _, _>(numbers().map(items)));
    let boxes = numbers().map(|at| Some([Some(at as f32), Some(0.5)]));
    let boxes: ArrayRef =
        Arc::new(FixedSizeListArray::from_iter_primitive::<types::Float32Type, _, _>(boxes, 2));
    let kinds: DictionaryArray<types::Int32Type> =
        numbers().map(|at| ["heron", "gull"][at as usize % 2]).collect();
    let field =
        |name: &str, array: &ArrayRef, nullable| Field::new(name, array.data_type().clone(), nullable);
    let inner = vec![
        (Arc::new(field("id", &ids, false)), ids.clone()),
        (Arc::new(field("name", &names, true)), names.clone()),
    ];
    let nested: ArrayRef = Arc::new(StructArray::from(inner));
    let columns = [
        ("id", ids),
        ("gaps", gaps),
        ("name", names),
        ("flag", flags),
        ("list", lists),
        ("box", boxes),
        ("kind", Arc::new(kinds)),
        ("nested", nested),
    ];
    let nullable = |name: &str| !matches!(name, "id" | "box");
    let fields: Vec<_> = columns.iter().map(|(name, array)| field(name, array, nullable(name))).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, array)| array).collect())
        .unwrap()
}

fn parquet(batches: &[RecordBatch], group: usize, packed: Compression) -> Buffer {
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(group)).set_compression(packed).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap().into()
}

fn ipc(batches: &[RecordBatch], stream: bool, packed: bool) -> Buffer {
    let packed = packed.then_some(arrow_ipc::CompressionType::LZ4_FRAME);
    let options = IpcWriteOptions::default().try_with_compression(packed).unwrap();
    let schema = batches[0].schema();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        return writer.into_inner().unwrap().into();
    }
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap().into()
}

/// The same rows in every form.
fn files(count: i32) -> Vec<(&'static str, Buffer)> {
    let batches: Vec<_> = (0..count).step_by(100).map(|from| birds(from, 100.min(count - from))).collect();
    let zstd = Compression::ZSTD(ZstdLevel::default());
    vec![
        ("parquet", parquet(&batches, 100, Compression::UNCOMPRESSED)),
        ("packed parquet", parquet(&batches, 64, zstd)),
        ("file", ipc(&batches, false, false)),
        ("packed file", ipc(&batches, false, true)),
        ("stream", ipc(&batches, true, false)),
        ("packed stream", ipc(&batches, true, true)),
    ]
}

fn sample(bytes: &Buffer) -> Sample {
    let mut sample = Sample::new(7, Key::whole("birds"));
    sample.set("bytes", bytes.clone());
    sample.set("label", 3_i64);
    sample
}

fn pieces(bytes: &Buffer, options: &str) -> Result<Vec<Sample>> {
    let pipe = RowGroups::new(RowGroupsOptions::parse(options)?)?;
    let mut items = pipe.cut(sample(bytes), &bytes.clone().into(), LIMIT)?;
    std::iter::from_fn(|| items.next_sample().transpose()).collect()
}

pub(crate) fn rows(bytes: &Buffer, options: &str) -> Result<Vec<Sample>> {
    let pipe = ReadRows::default();
    let mut out = Vec::new();
    for piece in pieces(bytes, options)? {
        let mut items = pipe.read(&piece, &bytes.clone().into(), LIMIT)?;
        while let Some(sample) = items.next_sample()? {
            out.push(sample);
        }
    }
    Ok(out)
}

fn columns(bytes: &Buffer, options: &str, read: &str) -> Result<Vec<Sample>> {
    let pipe = ReadColumns::new(ReadColumnsOptions::parse(read)?)?;
    let mut out = Vec::new();
    for piece in pieces(bytes, options)? {
        let mut items = pipe.read(&piece, &bytes.clone().into(), LIMIT)?;
        while let Some(sample) = items.next_sample()? {
            out.push(sample);
        }
    }
    Ok(out)
}

fn ids(samples: &[Sample]) -> Vec<i64> {
    samples.iter().map(|sample| sample.get("id").and_then(Value::as_i64).unwrap()).collect()
}

#[test]
fn rows_are_the_same_whatever_the_file() {
    let mut expected = None;
    for (form, bytes) in files(250) {
        let found = rows(&bytes, "{}").unwrap();
        assert_eq!(ids(&found), (0..250).collect::<Vec<_>>(), "{form}");
        for (at, row) in found.iter().enumerate() {
            assert_eq!(row.key().to_string(), format!("birds#{at}"), "{form}");
            assert_eq!((row.get("bytes"), row.get("label")), (None, Some(&3_i64.into())), "{form}");
        }
        let row = &found[7];
        let nested =
            Value::structure(vec![("id".into(), 7_i32.into()), ("name".into(), "a bird called 7".into())]);
        assert_eq!(row.get("gaps"), Some(&7_i64.into()));
        assert_eq!(found[9].get("gaps"), Some(&Value::NULL));
        assert_eq!(row.get("flag"), Some(&false.into()));
        assert_eq!(row.get("kind"), Some(&"gull".into()));
        assert_eq!(row.get("nested"), Some(&nested));
        assert_eq!(row.get("list"), Some(&Value::list(vec![0_i32.into(), 1_i32.into(), Value::NULL])));
        let two = found[6].get("list").and_then(Value::as_tensor).unwrap();
        assert_eq!((two.dtype(), two.shape()), (DType::I32, &[2][..]));
        assert_eq!(row.get("box").and_then(Value::as_tensor).unwrap().shape(), [2]);
        assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{form}");
    }
    let mut uids: Vec<_> = expected.unwrap().iter().map(Sample::uid).collect();
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len(), 250);
}

#[test]
fn text_shares_the_memory_of_the_file_where_it_is_not_packed() {
    let all = files(100);
    for form in ["parquet", "file", "stream"] {
        let bytes = &all.iter().find(|(name, _)| *name == form).unwrap().1;
        let found = rows(bytes, "{}").unwrap();
        let text = found[1].get("name").and_then(Value::as_bytes).unwrap();
        assert!(bytes.as_ptr_range().contains(&text.as_ptr()), "{form}");
    }
}

#[test]
fn columns_are_tensors_where_they_are_blocks_of_numbers_and_arrow_otherwise() {
    for (form, bytes) in files(250) {
        let found = columns(&bytes, "{}", r#"{"size": 80}"#).unwrap();
        let mut row = 0;
        for batch in &found {
            let tensor = |name: &str| batch.get(name).and_then(Value::as_tensor).cloned();
            let ids = tensor("id").unwrap();
            let count = ids.shape()[0] as usize;
            assert!(count <= 80, "{form}");
            assert_eq!(
                (batch.key().to_string(), ids.dtype()),
                (format!("birds#{row}"), DType::I32),
                "{form}"
            );
            assert_eq!(ids.data()[..4], (row as i32).to_ne_bytes());
            assert_eq!(
                (tensor("flag").unwrap().dtype(), tensor("box").unwrap().shape()),
                (DType::BOOL, &[count as i64, 2][..])
            );
            for (name, expected) in
                ["gaps", "name", "list", "kind", "nested"].iter().zip([1_usize, 2, 4, 6, 7])
            {
                let (field, array) = import(batch.get(name).unwrap()).unwrap();
                let whole = birds(row as i32, count as i32);
                assert_eq!((field.name().as_str(), array.len()), (*name, count), "{form}");
                let original = crate::RowValues::new(&whole).unwrap();
                let imported = crate::cells::Cells::new(&array).unwrap();
                for at in 0..count {
                    assert_eq!(
                        imported.value(at).unwrap(),
                        original.row(at).unwrap()[expected],
                        "{form} {name} {at}"
                    );
                }
            }
            let (kind, _) = import(batch.get("kind").unwrap()).unwrap();
            assert!(matches!(kind.data_type(), DataType::Dictionary(_, _)), "{form}: the dictionary is kept");
            row += count;
        }
        assert_eq!(row, 250, "{form}");
        let arrow = columns(&bytes, r#"{"columns": ["id"]}"#, r#"{"arrow": true}"#).unwrap();
        assert!(matches!(arrow[0].get("id").unwrap().view(), View::Arrow(_)));
        assert_eq!(arrow[0].schema().names().len(), 2, "{form}: the label and the column");
    }
}

#[test]
fn tensors_and_arrow_values_share_the_memory_of_the_file() {
    let bytes = ipc(&[birds(0, 100)], false, false);
    let found = columns(&bytes, "{}", "{}").unwrap();
    let within = |buffer: &Buffer| bytes.as_ptr_range().contains(&buffer.as_ptr());
    assert!(within(found[0].get("id").and_then(Value::as_tensor).unwrap().data()));
    assert!(within(found[0].get("box").and_then(Value::as_tensor).unwrap().data()));
    let names = found[0].get("name").unwrap().arrow().unwrap();
    assert!(names.buffers.iter().flatten().all(within), "validity, offsets and text");
}

#[test]
fn a_filter_leaves_out_row_groups_and_rows() {
    for (form, bytes) in files(250) {
        let pick = |filter: &str| rows(&bytes, &format!(r#"{{"columns": ["id"], "filter": "{filter}"}}"#));
        let found = pick("id >= 120 and name is not null and kind == 'gull' and id < 130.5").unwrap();
        assert_eq!(ids(&found), [121, 123, 127, 129], "{form}");
        assert_eq!(found[0].key().to_string(), "birds#121", "{form}: rows keep their numbers");
        assert_eq!(found[0].schema().names().len(), 2, "{form}: only what is wanted");
        let all = rows(&bytes, "{}").unwrap();
        assert_eq!(found[1].uid(), all[123].uid(), "{form}: and their uids");
        assert_eq!(ids(&pick("gaps is null and id < 7").unwrap()), [0, 3, 6], "{form}");
        assert_eq!(ids(&pick("name == 'a bird called 9' or").unwrap_err_or_default()), [0; 0]);
        assert!(pick("missing == 1").unwrap_err().message().contains("no column `missing`"), "{form}");
        assert!(pick("name == 1").is_err(), "{form}");
        assert!(pick("id > 1000").unwrap().is_empty(), "{form}");
    }
    let (_, bytes) = &files(250)[0];
    assert_eq!(
        pieces(bytes, r#"{"filter": "id > 150"}"#).unwrap().len(),
        2,
        "a row group of 100 is left out by its statistics"
    );
    assert_eq!(pieces(bytes, "{}").unwrap().len(), 3);
}

trait OrNone<T> {
    fn unwrap_err_or_default(self) -> T;
}

impl<T: Default> OrNone<T> for Result<T> {
    fn unwrap_err_or_default(self) -> T {
        assert!(self.is_err());
        T::default()
    }
}

#[test]
fn columns_are_picked_by_path() {
    let (_, bytes) = &files(100)[0];
    let found = rows(bytes, r#"{"columns": ["nested.name", "flag"]}"#).unwrap();
    let names: Vec<_> = found[0].schema().names().iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["label", "flag", "nested"]);
    assert_eq!(
        found[1].get("nested"),
        Some(&Value::structure(vec![("name".into(), "a bird called 1".into())]))
    );
    assert!(rows(bytes, r#"{"columns": ["nested.nam"]}"#).is_err());
    let (_, file) = &files(100)[2];
    assert!(rows(file, r#"{"columns": ["nested.name"]}"#).is_err());
    assert_eq!(rows(file, r#"{"columns": ["flag"]}"#).unwrap()[0].schema().names().len(), 2);
}

#[test]
fn hive_folders_are_fields_and_filtered_before_anything_is_read() {
    let (_, bytes) = &files(100)[0];
    let cut = |filter: &str| {
        let options = format!(r#"{{"hive": true, "filter": "{filter}", "columns": ["id", "year"]}}"#);
        let pipe = RowGroups::new(RowGroupsOptions::parse(&options)?)?;
        let mut sample = sample(bytes);
        sample.set("path", "data/year=2026/birds.parquet");
        let mut items = pipe.cut(sample, &bytes.clone().into(), LIMIT)?;
        std::iter::from_fn(|| items.next_sample().transpose()).collect::<Result<Vec<_>>>()
    };
    assert!(cut("year == 2025").unwrap().is_empty());
    let found = cut("year == 2026 and id < 3").unwrap();
    assert_eq!(found[0].get("year"), Some(&2026_i64.into()));
    let mut items = ReadRows::default().read(&found[0], &bytes.clone().into(), LIMIT).unwrap();
    let row = items.next_sample().unwrap().unwrap();
    assert_eq!((row.get("year"), row.get("id")), (Some(&2026_i64.into()), Some(&0_i32.into())));
    assert!(cut("year == 'x' and year < 2.5").unwrap().is_empty());
}

#[test]
fn a_row_group_without_lists_is_cut_into_pieces() {
    let count = PIECE_ROWS as i32 * 5 / 2;
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let bytes = parquet(&[batch], count as usize, Compression::SNAPPY);
    let cut = pieces(&bytes, "{}").unwrap();
    let sizes: Vec<_> =
        cut.iter().map(|piece| Cut::from_value(piece.get(FIELD).unwrap()).unwrap().piece.rows).collect();
    assert_eq!(sizes, [PIECE_ROWS, PIECE_ROWS, PIECE_ROWS / 2]);
    let found = columns(&bytes, r#"{"filter": "id >= 131070 and id < 131075"}"#, "{}").unwrap();
    let found: Vec<_> = found
        .iter()
        .flat_map(|batch| batch.get("id").and_then(Value::as_tensor).unwrap().data().to_vec())
        .collect();
    assert_eq!(found, (131_070..131_075_i32).flat_map(i32::to_ne_bytes).collect::<Vec<_>>());
}

#[test]
fn a_batch_that_cannot_be_read_is_one_answer_and_a_place_behind_it_can_be_saved() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/batches.arrow");
    let mut bytes = std::fs::read(file).unwrap();
    bytes[784] ^= 0xff; // Where the second of its three batches, of two rows each, is packed.
    let bytes = Buffer::from(bytes);
    let blob: Blob = bytes.clone().into();
    let (reader, piece) = (ReadRows::default(), &pieces(&bytes, "{}").unwrap()[0]);
    let columns = ReadColumns::new(ReadColumnsOptions::parse(r#"{"size": 1}"#).unwrap()).unwrap();
    let told = |answer: &Result<Option<Sample>>| match answer {
        Ok(sample) => Ok(sample.as_ref().map(|sample| (sample.uid(), sample.key().to_string()))),
        Err(error) => Err(error.to_string()),
    };
    macro_rules! check {
        ($open:expr) => {
            let (mut items, mut answers) = ($open, Vec::new());
            loop {
                let mut rest = $open;
                rest.go_to(&forebay_core::Items::state(&items).unwrap()).unwrap();
                let next = items.next_sample();
                assert_eq!(told(&rest.next_sample()), told(&next));
                match next {
                    Ok(None) => break,
                    answer => answers.push(answer.is_ok()),
                }
                assert!(forebay_core::Items::goes_on(&items));
            }
            assert_eq!(answers, [true, true, false, true, true]);
        };
    }
    check!(reader.read(piece, &blob, LIMIT).unwrap());
    check!(columns.read(piece, &blob, LIMIT).unwrap());
}

#[test]
fn every_place_can_be_saved() {
    for (form, bytes) in files(130) {
        let blob: Blob = bytes.clone().into();
        let pipe = RowGroups::new(RowGroupsOptions::parse(r#"{"filter": "id != 50"}"#).unwrap()).unwrap();
        let open = || pipe.cut(sample(&bytes), &blob, LIMIT).unwrap();
        let (mut items, mut all) = (open(), Vec::new());
        loop {
            let mut rest = open();
            rest.go_to(&forebay_core::Items::state(&items).unwrap()).unwrap();
            let next = items.next_sample().unwrap();
            assert_eq!(rest.next_sample().unwrap(), next, "{form}");
            match next {
                Some(piece) => all.push(piece),
                None => break,
            }
        }
        let reader = ReadRows::default();
        let columns = ReadColumns::new(ReadColumnsOptions::parse(r#"{"size": 30}"#).unwrap()).unwrap();
        for piece in &all {
            macro_rules! check {
                ($open:expr) => {
                    let mut items = $open;
                    loop {
                        let mut rest = $open;
                        rest.go_to(&forebay_core::Items::state(&items).unwrap()).unwrap();
                        let (next, again) = (items.next_sample().unwrap(), rest.next_sample().unwrap());
                        assert_eq!(
                            next.as_ref().map(|row| (row.uid(), row.get("id"))),
                            again.as_ref().map(|row| (row.uid(), row.get("id"))),
                            "{form}"
                        );
                        if next.is_none() {
                            break;
                        }
                    }
                };
            }
            check!(reader.read(piece, &blob, LIMIT).unwrap());
            check!(columns.read(piece, &blob, LIMIT).unwrap());
        }
    }
}

#[test]
fn a_file_that_changed_and_a_sample_that_is_no_piece_are_refused() {
    let (_, one) = &files(100)[0];
    let (_, two) = &files(130)[0];
    let piece = &pieces(one, "{}").unwrap()[0];
    let error = ReadRows::default().read(piece, &two.clone().into(), LIMIT).err().unwrap();
    assert!(error.message().contains("changed"), "{error}");
    let error = ReadRows::default().read(&sample(one), &one.clone().into(), LIMIT).err().unwrap();
    assert!(error.message().contains("row_groups"), "{error}");
}

#[test]
fn a_document_decodes_whole() {
    for (form, bytes) in files(250) {
        let (_, array) = import(&decode(&bytes, Limits::DEFAULT).unwrap()).unwrap();
        assert_eq!(array.len(), 250, "{form}");
        let small = Limits { bytes: 4096, ..Limits::DEFAULT };
        assert_eq!(decode(&bytes, small).unwrap_err().kind(), forebay_core::ErrorKind::Limit, "{form}");
    }
}

#[test]
fn arrays_of_every_layout_cross_and_come_back() {
    let numbers = birds(0, 50);
    for (column, field) in numbers.columns().iter().zip(numbers.schema_ref().fields()) {
        for array in [column.clone(), column.slice(3, 40), column.slice(9, 0)] {
            let (found, back) = import(&export(&array, field).unwrap()).unwrap();
            assert_eq!((&found, &*back), (field.as_ref(), &*array), "{field}");
        }
    }
    let views: ArrayRef =
        Arc::new(arrow_array::StringViewArray::from_iter_values(["short", "longer than twelve bytes"]));
    let field = Field::new("v", DataType::Utf8View, true)
        .with_metadata(std::collections::HashMap::from([("k".to_owned(), "v".to_owned())]));
    assert_eq!(import(&export(&views, &field).unwrap()).unwrap(), (field, views));
}

/// What is read of damaged bytes: an error, or some rows.
fn survive(bytes: Buffer) -> Result<usize, Error> {
    let limits = Limits { bytes: 1 << 24, ..Limits::DEFAULT };
    let mut found = 0;
    for batch in read(&bytes.into(), &ReadOptions { limits, ..ReadOptions::default() })? {
        let batch = batch?.columns;
        let rows = crate::RowValues::new(&batch)?;
        for at in 0..rows.len() {
            rows.row(at)?;
        }
        found += batch.num_rows();
    }
    Ok(found)
}

#[test]
fn damaged_bytes_are_an_error_or_other_rows() {
    let small =
        record_batch!(("id", Int32, [1, 2, 3]), ("name", Utf8, [Some("a heron"), None, Some("x")])).unwrap();
    let all = [
        parquet(std::slice::from_ref(&small), 2, Compression::SNAPPY),
        ipc(std::slice::from_ref(&small), false, false),
        ipc(std::slice::from_ref(&small), true, false),
        ipc(std::slice::from_ref(&small), true, true),
    ];
    let mut refused = 0;
    for bytes in &all {
        assert_eq!(survive(bytes.clone()).unwrap(), 3);
        for end in 0..bytes.len() {
            // A stream may end behind any message.
            refused += usize::from(survive(bytes.slice(..end)).is_err());
        }
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut other = bytes.to_vec();
                other[at] ^= change;
                let _ = survive(other.into());
            }
        }
    }
    let ends: usize = all.iter().map(|bytes| bytes.len()).sum();
    assert!(refused > ends * 9 / 10, "{refused} of {ends} cut files were refused");
}
