//! Shards to samples: grouping, keys, uids, what is shared and what is refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use forebay_core::{Buffer, Error, ErrorKind, Sample, Str, Value};
use forebay_tar::{Group, samples};
use forebay_testkit::{Host, answers};
use tar::{Builder, EntryType, Header};

fn archive(members: &[(&str, &str)]) -> Buffer {
    let mut builder = Builder::new(Vec::new());
    for (name, contents) in members {
        let mut header = Header::new_gnu();
        header.set_size(contents.len() as u64);
        if name.ends_with('/') {
            header.set_entry_type(EntryType::Directory);
        }
        builder.append_data(&mut header, name, contents.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().into()
}

fn grouped(shard: &Buffer, group: Group) -> Vec<Result<Sample, Error>> {
    samples(shard.clone(), Str::from("shard.tar"), 1, group).collect()
}

/// A sample as text: `key field=contents ...`.
fn line(sample: &Sample) -> String {
    let fields = sample.fields().map(|(name, value)| {
        let bytes = value.as_bytes().unwrap();
        format!(" {name}={}", String::from_utf8_lossy(bytes))
    });
    format!("{}{}", sample.key(), fields.collect::<String>())
}

#[test]
fn neighbours_of_one_stem_are_one_sample() {
    let shard = archive(&[
        ("__info__/made.json", "by hand"),
        ("a/", ""),
        ("a/0001.jpg", "J"),
        ("a/0001.Seg.PNG", "S"),
        ("a/._0001.jpg", "mac"),
        ("a/README", "no dot"),
        ("a/0002.jpg", ""),
        ("b/0002.jpg", "other folder"),
        ("a/0001.cls", "again"),
    ]);
    let lines: Vec<_> =
        grouped(&shard, Group::WebDataset).iter().map(|s| line(s.as_ref().unwrap())).collect();
    assert_eq!(
        lines,
        [
            "shard.tar!/a/0001 jpg=J seg.png=S",
            "shard.tar!/a/0002 jpg=",
            "shard.tar!/b/0002 jpg=other folder",
            "shard.tar!/a/0001 cls=again",
        ]
    );
}

#[test]
fn without_groups_each_file_is_a_sample() {
    let shard = archive(&[("a/", ""), ("a/README", "hi"), ("a/0001.jpg", "J")]);
    let lines: Vec<_> = grouped(&shard, Group::None).iter().map(|s| line(s.as_ref().unwrap())).collect();
    assert_eq!(
        lines,
        ["shard.tar!/a/README name=a/README bytes=hi", "shard.tar!/a/0001.jpg name=a/0001.jpg bytes=J"]
    );
}

#[test]
fn fields_and_keys_are_slices_of_the_shard_and_schemas_are_shared() {
    let shard = archive(&[("1.jpg", "one"), ("1.cls", "1"), ("2.jpg", "two"), ("2.cls", "2")]);
    let found: Vec<_> = grouped(&shard, Group::WebDataset).into_iter().map(Result::unwrap).collect();
    for sample in &found {
        assert!(sample.values().iter().all(|value| value.as_bytes().unwrap().same_owner(&shard)));
        assert!(sample.key().name.clone().into_buffer().same_owner(&shard));
        assert!(sample.schema().is(found[0].schema()));
    }
    assert_eq!(found.iter().map(|sample| sample.key().index).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn uids_depend_on_the_shard_and_the_place_alone() {
    let shard = archive(&[("1.jpg", "one"), ("2.jpg", "two")]);
    let uids = |uid| -> Vec<u64> {
        samples(shard.clone(), Str::from("any"), uid, Group::WebDataset)
            .map(|sample| sample.unwrap().uid())
            .collect()
    };
    assert_eq!(uids(1), uids(1));
    assert_ne!(uids(1)[0], uids(1)[1]);
    assert_ne!(uids(1)[0], uids(2)[0]);
}

#[test]
fn a_field_given_twice_names_both_members_and_the_next_sample_comes() {
    let shard = archive(&[("1.jpg", "a"), ("1.JPG", "b"), ("1.cls", "c"), ("2.jpg", "d")]);
    let found = grouped(&shard, Group::WebDataset);
    let error = found[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("1.jpg and 1.JPG"), "{error}");
    assert_eq!(error.get("file"), Some("shard.tar"));
    assert_eq!(line(found[1].as_ref().unwrap()), "shard.tar!/2 jpg=d");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_sample_that_damage_cuts_is_not_given() {
    let shard = archive(&[("1.jpg", "a"), ("1.cls", "b"), ("2.jpg", "c"), ("2.cls", "d")]);
    // The last member's header, before its contents and the end mark.
    let cut = shard.slice(..shard.len() - 1024 - 512 - 100);
    let found = grouped(&cut, Group::WebDataset);
    assert_eq!(line(found[0].as_ref().unwrap()), "shard.tar!/1 jpg=a cls=b");
    let error = found[1].as_ref().unwrap_err();
    assert_eq!((error.kind(), error.get("file")), (ErrorKind::Corrupt, Some("shard.tar")));
    assert_eq!(found.len(), 2);
}

/// As a host reads it: samples, and the members that errors name.
fn answered(shard: Buffer) -> Vec<Result<String, String>> {
    let mut items = samples(shard, Str::from("shard.tar"), 1, Group::WebDataset);
    let host = Host::new();
    let cx = &host.context();
    let member = |error: Error| error.get("member").unwrap_or_default().to_owned();
    let answers = answers(&mut items, cx);
    answers.map(|answer| answer.map(|sample| line(&sample)).map_err(member)).collect()
}

#[test]
fn a_stream_goes_on_after_an_error_of_one_sample() {
    let shard = archive(&[("1.jpg", "a"), ("1.JPG", "b"), ("2.jpg", "c"), ("3.jpg", "d"), ("3.jpg", "e")]);
    let wanted = [Err("1.JPG".into()), Ok("shard.tar!/2 jpg=c".into()), Err("3.jpg".into())];
    assert_eq!(answered(shard), wanted);
}

#[test]
fn a_member_that_is_cut_takes_no_other_sample_with_it() {
    let shard = archive(&[("1.jpg", "a"), ("2.jpg", "b"), ("3.jpg", "c")]);
    let cut = shard.slice(..shard.len() - 1024 - 512);
    let wanted = [Ok("shard.tar!/1 jpg=a".into()), Ok("shard.tar!/2 jpg=b".into()), Err("3.jpg".into())];
    assert_eq!(answered(cut), wanted);
    let shard = archive(&[("1.jpg", "a"), ("2.jpg", "b"), ("2.cls", "c")]);
    let cut = shard.slice(..shard.len() - 1024 - 512);
    assert_eq!(answered(cut), [Ok("shard.tar!/1 jpg=a".into()), Err("2.cls".into())]);
}

#[test]
fn thousands_of_members_of_one_stem_are_refused() {
    let names: Vec<_> = (0..1100).map(|number| format!("all.{number}")).collect();
    let members: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    let found = grouped(&archive(&members), Group::WebDataset);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].as_ref().unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn many_schemas_in_one_shard_stay_right() {
    let names: Vec<_> = (0..200).map(|number| format!("{number}.f{number}")).collect();
    let members: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
    for (number, sample) in grouped(&archive(&members), Group::WebDataset).into_iter().enumerate() {
        let value = sample.unwrap().get(&format!("f{number}")).and_then(Value::as_bytes).cloned();
        assert_eq!(value.as_deref(), Some(&b"x"[..]));
    }
}
