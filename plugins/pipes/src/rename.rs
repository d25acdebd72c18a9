//! `rename`: new names for fields.

use forebay_core::{Context, DataPipe, Error, Map, OneOrMany, PipeInfo, Result, Sample, Schema, options};

use crate::{
    by_schema::BySchema,
    select::{place, repeated},
};

options! {
    /// Options of `rename`.
    pub struct RenameOptions {
        /// `old=new`, one for each field to rename; all at once, so that two can change places.
        fields: OneOrMany<String> = required;
    }
}

/// Gives fields new names; their order stays.
#[derive(Debug)]
pub struct Rename {
    names: Vec<(String, String)>,
    schemas: BySchema<Schema>,
}

impl DataPipe for Rename {
    const INFO: PipeInfo = PipeInfo { name: "rename", summary: "New names for fields", ..PipeInfo::DEFAULT };
    type Options = RenameOptions;

    fn new(options: RenameOptions) -> Result<Self> {
        let refuse = |message: String| Error::invalid(message).context("option", "fields");
        let mut names = Vec::new();
        for text in &options.fields.0 {
            match pair(text) {
                Some((old, new)) => names.push((old.to_owned(), new.to_owned())),
                None => return Err(refuse(format!("found `{text}`, expected `old=new`"))),
            }
        }
        let (old, new): (Vec<_>, Vec<_>) = names.iter().map(|(old, new)| (old, new)).unzip();
        if let Some(twice) = repeated(&old).or_else(|| repeated(&new)) {
            return Err(refuse(format!("`{twice}` stands twice on one side")));
        }
        Ok(Self { names, schemas: BySchema::default() })
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
            names[place(schema, old)?] = new.as_str().into();
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
    use super::*;
    use crate::testing::{map, sample, small_host};

    fn rename(fields: &[&str]) -> Result<Rename> {
        let fields = OneOrMany(fields.iter().map(|&name| name.to_owned()).collect());
        Rename::new(RenameOptions { fields })
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
}
