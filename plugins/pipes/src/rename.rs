//! `rename`: new names for fields.
//!
//! ```toml
//! [rename]
//! page = "fields"
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | untar | rename 'jpg;png=image'"''']
//! cases = ["range N | rename 'value=number'"]
//! ```

use forebay_core::{Context, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Schema, options};

use crate::{
    plumbing::by_schema::BySchema,
    select::{absent, repeated},
};

options! {
    /// Options of `rename`.
    pub struct RenameOptions {
        /// `old=new`, for each field to rename; all at once, so two fields can swap names. In `jpg;png=image` the
        /// first of the old names that a sample has gets the new one.
        fields: OneOrMany<String> = required;
        /// What to do with a sample that has none of the old names: `fail`, or `keep` its names as they are.
        missing: String = "fail", one_of ["fail", "keep"];
    }
}

/// Gives fields new names; their order stays.
#[derive(Debug)]
pub struct Rename {
    /// For each new name the old ones that may become it.
    names: Vec<(Vec<String>, String)>,
    keeps: bool,
    schemas: BySchema<Schema>,
}

impl DataPipe for Rename {
    const INFO: PipeInfo = PipeInfo { name: "rename", summary: "New names for fields", ..PipeInfo::DEFAULT };
    type Options = RenameOptions;

    fn new(options: RenameOptions) -> Result<Self> {
        let refuse = |message: String| Error::invalid(message).context("option", "fields");
        let mut names: Vec<(Vec<String>, String)> = Vec::new();
        for text in &options.fields.0 {
            let sides =
                pair(text).map(|(old, new)| (old.split(';').map(str::to_owned).collect::<Vec<_>>(), new));
            match sides.filter(|(old, _)| old.iter().all(|old| !old.is_empty())) {
                Some((old, new)) => names.push((old, new.to_owned())),
                None => {
                    return Err(refuse(format!("found `{text}`, expected `old=new`, or `old;older=new`")));
                }
            }
        }
        let old: Vec<_> = names.iter().flat_map(|(old, _)| old).collect();
        let new: Vec<_> = names.iter().map(|(_, new)| new).collect();
        if let Some(twice) = repeated(&old).or_else(|| repeated(&new)) {
            return Err(refuse(format!("`{twice}` stands twice on one side")));
        }
        Ok(Self { names, keeps: options.missing == "keep", schemas: BySchema::default() })
    }
}

/// The two sides of `one=other`, if neither is empty.
pub(crate) fn pair(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(one, other)| !one.is_empty() && !other.is_empty())
}

impl Rename {
    fn rename(&self, schema: &Schema) -> Result<Schema> {
        let mut names: Vec<_> = schema.names().to_vec();
        for (old, new) in &self.names {
            match old.iter().find_map(|old| schema.position(old)) {
                Some(at) => names[at] = new.as_str().into(),
                None if self.keeps => {}
                None => return Err(absent(schema, old)),
            }
        }
        let texts: Vec<_> = names.iter().map(|name| name.as_str()).collect();
        if let Some(twice) = repeated(&texts) {
            return Err(Error::invalid("a field of this name is there already").context("field", twice));
        }
        Ok(Schema::new(names))
    }
}

impl Map for Rename {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let schema = self.schemas.get(sample.schema(), || self.rename(sample.schema()))?;
        sample.reshape(&schema, |_, _, _| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, random::Rng};

    use super::*;
    use crate::testing::{map, sample, small_host, some};

    fn rename(fields: &[&str]) -> Result<Rename> {
        let fields = OneOrMany(fields.iter().map(|&name| name.to_owned()).collect());
        Rename::new(RenameOptions { fields, missing: "fail".into() })
    }

    #[test]
    fn renames_all_at_once_b134() {
        let host = small_host();
        let input = sample(3, &[("cls", 7_i64.into()), ("png", 1_i64.into()), ("x", 2_i64.into())]);
        let out = map(&rename(&["cls=txt"]).unwrap(), &input, &host).unwrap();
        assert_eq!(out, sample(3, &[("txt", 7_i64.into()), ("png", 1_i64.into()), ("x", 2_i64.into())]));
        let out = map(&rename(&["cls=png", "png=cls"]).unwrap(), &input, &host).unwrap();
        assert_eq!(out, sample(3, &[("png", 7_i64.into()), ("cls", 1_i64.into()), ("x", 2_i64.into())]));
    }

    #[test]
    fn refuses_what_does_not_work_b138() {
        let host = small_host();
        let input = sample(3, &[("cls", 7_i64.into()), ("png", 1_i64.into())]);
        let error = map(&rename(&["jpg=image"]).unwrap(), &input, &host).unwrap_err();
        assert_eq!(
            (error.get("field"), error.message()),
            (Some("jpg"), "no field called `jpg`; there are: cls, png")
        );
        let error = map(&rename(&["cls=png"]).unwrap(), &input, &host).unwrap_err();
        assert_eq!(error.get("field"), Some("png"));
        for wrong in [&["cls"][..], &["=a"], &["a="], &["a=b", "a=c"], &["a=c", "b=c"]] {
            assert_eq!(rename(wrong).unwrap_err().get("option"), Some("fields"), "{wrong:?}");
        }
    }

    #[test]
    fn the_first_old_name_that_a_sample_has_is_renamed() {
        let host = small_host();
        let options = r#"{"fields": ["jpg;png=image", "cls=label"], "missing": "keep"}"#;
        let pipe = Rename::new(RenameOptions::parse(options).unwrap()).unwrap();
        for (before, after) in [
            (&["jpg", "x"][..], &["image", "x"][..]),
            (&["x", "png"], &["x", "image"]),
            (&["png", "jpg"], &["png", "image"]),
            (&["x", "cls"], &["x", "label"]),
            (&["x"], &["x"]),
        ] {
            let of = |names: &[&str]| {
                let fields: Vec<_> = (0_i64..).zip(names).map(|(at, name)| (*name, at.into())).collect();
                sample(3, &fields)
            };
            assert_eq!(map(&pipe, &of(before), &host).unwrap(), of(after), "{before:?}");
        }
        let strict = rename(&["jpg;png=image"]).unwrap();
        let error = map(&strict, &sample(3, &[("x", 1_i64.into())]), &host).unwrap_err();
        assert_eq!(error.message(), "no field called `jpg` or `png`; there are: x");
        for wrong in [&["a;=b"][..], &[";a=b"], &["a;b=c", "b=d"]] {
            assert_eq!(rename(wrong).unwrap_err().get("option"), Some("fields"), "{wrong:?}");
        }
    }

    #[test]
    fn equals_the_definition_for_any_fields() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let (mut rng, host, mut good, mut twice) = (Rng::new(45, 0), small_host(), 0, 0);
        for _ in 0..50 {
            let (old, mut new) =
                (some(&mut rng, &NAMES[..3]), some(&mut rng, &["a", "b", "c", "d", "e", "f"]));
            new.extend(["g", "h", "i"]);
            let pairs: Vec<_> = old.iter().zip(&new).map(|(old, new)| format!("{old}={new}")).collect();
            let pipe = rename(&pairs.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
            for uid in 0..20 {
                let names = some(&mut rng, &NAMES);
                // Each field holds its old name.
                let of = |called: &[&str]| {
                    let fields: Vec<_> =
                        called.iter().zip(&names).map(|(called, name)| (*called, (*name).into())).collect();
                    sample(uid, &fields)
                };
                let mut wanted = names.clone();
                for name in &mut wanted {
                    if let Some(at) = old.iter().position(|old| old == name) {
                        *name = new[at];
                    }
                }
                let found = map(&pipe, &of(&names), &host);
                if let Some(&missing) = old.iter().find(|name| !names.contains(name)) {
                    assert_eq!(found.unwrap_err().get("field"), Some(missing));
                } else if let Some(at) = (0..wanted.len()).find(|&at| wanted[..at].contains(&wanted[at])) {
                    twice += 1;
                    assert_eq!(found.unwrap_err().get("field"), Some(wanted[at]));
                } else {
                    good += 1;
                    assert_eq!(found.unwrap(), of(&wanted), "{pairs:?}");
                }
            }
        }
        assert!(good > 200 && twice > 30, "{good} renamed, {twice} with a name twice");
    }
}
