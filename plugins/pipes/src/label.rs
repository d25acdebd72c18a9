//! `label`: the class that a file's folder stands for.
//!
//! ```toml
//! [label]
//! page = "fields"
//! examples = [
//!     "mkdir -p animals/cat animals/dog && cp plugins/image/seeds/rgb.png animals/cat/ && cp plugins/image/seeds/rgb.png animals/dog/",
//!     '''forebay head "files 'animals/**/*.png' | label root=animals | decode"''',
//! ]
//!
//! [[label.ending]]
//! graph = "files '../plugins/pipes/src/*.rs' open=none | take N | label classes=[src, other] root='../plugins/pipes'"
//! instead = "files '../plugins/pipes/src/*.rs' open=none | repeat | label classes=[src, other] root='../plugins/pipes'"
//! why = "a folder has an end: its files come again"
//! ```

use forebay_core::{
    Context, DataPipe, Error, FoldersOption, Map, PipeInfo, PipeLayout, Result, Sample, Schema, Str, Value,
    View, options,
};

use crate::plumbing::{by_schema::BySchema, keys::Index};

const PATH: &str = "path";

options! {
    /// Options of `label`.
    pub struct LabelOptions {
        /// The names of the classes; the place of a name is its label. If you give none, the folders in `root` are
        /// the classes, sorted, except those that begin with a dot.
        classes: Option<Vec<String>> = null;
        /// The folder with a folder for each class; required without `classes`.
        root: String = ".";
        /// The field for the label, an int64.
        field: String = "label";
        /// A field for the class's name; null for none.
        class: Option<String> = "class";
    }
}

/// Adds to a file's sample the class that its folder, the one directly below `root`, is called.
///
/// Takes `path`. State: none.
#[derive(Debug)]
pub struct Label {
    classes: Vec<Str>,
    /// The label of each class.
    labels: Index,
    root: String,
    /// The names of the folders that lead to the root.
    above: Vec<Vec<u8>>,
    /// What paths below the root begin with, written plainly.
    prefix: Vec<u8>,
    field: String,
    class: Option<String>,
    shapes: BySchema<Shape>,
}

/// What samples of one schema become.
#[derive(Debug, Clone)]
struct Shape {
    schema: Schema,
    path: usize,
    label: usize,
    class: Option<usize>,
}

impl DataPipe for Label {
    const INFO: PipeInfo = PipeInfo {
        name: "label",
        summary: "Adds the class that a file's folder is named after, and its number",
        layout: PipeLayout {
            folders_option: Some(FoldersOption { names: "classes", root: "root" }),
            ..PipeLayout::DEFAULT
        },
        ..PipeInfo::DEFAULT
    };
    type Options = LabelOptions;

    fn new(options: LabelOptions) -> Result<Self> {
        let LabelOptions { classes, root, field, class } = options;
        let refuse = |option, message: String| Err(Error::invalid(message).context("option", option));
        // The loader has set them, where the graph did not.
        let Some(classes) = classes else { return refuse("classes", "missing option".into()) };
        let mut labels = Index::default();
        for (label, class) in (0..).zip(&classes) {
            let hash = labels.hash(class.as_bytes());
            if labels.find(hash, class.as_bytes()).is_some() {
                return refuse("classes", format!("`{class}` stands there twice"));
            }
            labels.insert(hash, class.as_bytes(), label);
        }
        if class.as_ref() == Some(&field) {
            return refuse("field", format!("`{field}` is the field for the class's name"));
        }
        let classes = classes.into_iter().map(Str::from).collect();
        let above: Vec<_> =
            if root.is_empty() { Vec::new() } else { parts(&root).map(<[u8]>::to_vec).collect() };
        let prefix = above.iter().flat_map(|part| [&part[..], b"/"]).collect::<Vec<_>>().concat();
        Ok(Self { classes, labels, root, above, prefix, field, class, shapes: BySchema::default() })
    }
}

impl Map for Label {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let shape = self.shapes.get(sample.schema(), || self.shape(sample.schema()))?;
        sample.reshape(&shape.schema, |_, _, values| {
            let label = self.label(&values[shape.path])?;
            values.resize_with(shape.schema.len(), Value::default);
            values[shape.label] = (label as i64).into();
            if let Some(class) = shape.class {
                values[class] = self.classes[label].clone().into();
            }
            Ok(())
        })
    }
}

impl Label {
    fn shape(&self, schema: &Schema) -> Result<Shape> {
        let mut names = schema.names().to_vec();
        let mut place = |name: &str| {
            schema.position(name).unwrap_or_else(|| {
                names.push(name.into());
                names.len() - 1
            })
        };
        let (label, class) = (place(&self.field), self.class.as_deref().map(place));
        let path = schema.position(PATH).ok_or_else(no_path)?;
        let schema = if names.len() == schema.len() { schema.clone() } else { Schema::new(names) };
        Ok(Shape { schema, path, label, class })
    }

    /// The label of the file at this path.
    fn label(&self, path: &Value) -> Result<usize> {
        let View::Str(path) = path.view() else { return Err(no_path()) };
        let folder = match self.plain_folder(path) {
            Some(folder) => folder,
            None => self.folder(path).map_err(|error| error.context("path", path))?,
        };
        let label = self.labels.find(self.labels.hash(folder), folder);
        label.map(|label| label as usize).ok_or_else(|| {
            let (folder, count) = (String::from_utf8_lossy(folder), self.classes.len());
            Error::invalid(format!("its folder `{folder}` is none of the {count} classes"))
                .context("path", path)
        })
    }

    /// As [`folder`](Label::folder), for a path without what one could leave out of it, as nearly all are.
    #[inline]
    fn plain_folder<'a>(&self, path: &'a str) -> Option<&'a [u8]> {
        let below = match &self.prefix[..] {
            [] => path.as_bytes(),
            prefix => path.as_bytes().strip_prefix(prefix)?,
        };
        let end = below.iter().position(|byte| *byte == b'/')?;
        let begins_name = |at| below.get(at).is_some_and(|byte| !matches!(byte, b'/' | b'.'));
        (begins_name(0) && begins_name(end + 1)).then(|| &below[..end])
    }

    /// The folder directly below the root that `path` lies in.
    fn folder<'a>(&self, path: &'a str) -> Result<&'a [u8]> {
        let mut below = parts(path);
        if self.above.iter().any(|above| below.next() != Some(&above[..])) {
            return Err(Error::invalid(format!("the file does not lie below `{}`", self.root)));
        }
        match (below.next(), below.next()) {
            (Some(folder), Some(_)) if !folder.is_empty() && folder != b".." => Ok(folder),
            _ => Err(Error::invalid(format!("the file lies in no folder below `{}`", self.root))),
        }
    }
}

/// The names in a path; the first is empty where it begins at the root of all.
fn parts(path: &str) -> impl Iterator<Item = &[u8]> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let parts = path.as_bytes().split(|byte| *byte == b'/').enumerate();
    parts.filter(|(at, part)| *part != b"." && (*at == 0 || !part.is_empty())).map(|(_, part)| part)
}

fn no_path() -> Error {
    Error::invalid("expected a field `path` that is text")
}

#[cfg(test)]
mod tests {
    use forebay_core::{Options, random::Rng};

    use super::*;
    use crate::testing::{map, sample, small_host};

    fn label(root: &str, path: &str) -> Result<Sample> {
        let options = format!(r#"{{"classes": ["ant", "bee"], "root": "{root}"}}"#);
        map(&Label::new(LabelOptions::parse(&options)?)?, &sample(1, &[("path", path.into())]), &small_host())
    }

    #[test]
    fn the_folder_below_the_root_is_the_class() {
        for (root, path) in [
            ("d", "d/bee/x/1.jpg"),
            ("./d/", "d/bee/1.jpg"),
            (".", "bee/1.jpg"),
            ("/d", "/d/bee/1"),
            ("", "./bee/1"),
            ("file:///d", "/d//bee/1"),
        ] {
            let out = label(root, path).unwrap();
            assert_eq!(out.get("label").and_then(Value::as_i64), Some(1), "{root} {path}");
            assert_eq!(out.get("class").and_then(Value::as_str), Some("bee"));
        }
        for (root, path) in [
            ("d", "e/bee/1.jpg"),
            ("d", "d/bee"),
            ("d", "d/cow/1.jpg"),
            ("d", "/d/bee/1"),
            (".", "/bee/1"),
            ("d", "d/../bee/1"),
        ] {
            assert_eq!(label(root, path).unwrap_err().get("path"), Some(path));
        }
    }

    #[test]
    fn options_and_samples_that_do_not_fit_are_refused() {
        for (options, option) in [
            ("{}", "classes"),
            (r#"{"classes": ["ant", "ant"]}"#, "classes"),
            (r#"{"classes": ["ant"], "field": "class"}"#, "field"),
        ] {
            let error = LabelOptions::parse(options).and_then(Label::new).unwrap_err();
            assert_eq!(error.get("option"), Some(option));
        }
        let pipe = Label::new(LabelOptions::parse(r#"{"classes": ["ant"]}"#).unwrap()).unwrap();
        for (name, value) in [("path", Value::from(3_i64)), ("file", "ant/1.jpg".into())] {
            let error = map(&pipe, &sample(1, &[(name, value)]), &small_host()).unwrap_err();
            assert!(error.message().contains("`path`"), "{error}");
        }
    }

    #[test]
    fn fields_that_are_there_are_set() {
        let options = r#"{"classes": ["ant", "bee"], "field": "path"}"#;
        let pipe = Label::new(LabelOptions::parse(options).unwrap()).unwrap();
        let input = sample(1, &[("class", Value::NULL), ("path", "bee/1".into())]);
        let wanted = sample(1, &[("class", "bee".into()), ("path", 1_i64.into())]);
        assert_eq!(map(&pipe, &input, &small_host()).unwrap(), wanted);
    }

    #[test]
    fn equals_the_definition_for_any_path() {
        let (mut rng, host, mut good) = (Rng::new(50, 0), small_host(), 0);
        for uid in 0..400 {
            let mut one = |of: &[&'static str]| of[rng.below(of.len() as u64) as usize];
            let (root, lies) =
                (one(&["d", "./d/", "d/e", "/d", "."]), one(&["d/", "d/./", "./d/", "d/e/", "/d/", ""]));
            let (folder, deeper) = (one(&["ant/", "bee/", "cow/", ""]), one(&["", "x/", "x/bee/"]));
            let path = format!("{lies}{folder}{deeper}1.jpg");
            // The parts of the path below those of the root: the first is the class, if there is another one behind it.
            let parts = |path: &str| -> Vec<String> {
                let named = path
                    .split('/')
                    .enumerate()
                    .filter(|(at, part)| !(part.is_empty() && *at > 0 || *part == "."));
                named.map(|(_, part)| part.to_owned()).collect()
            };
            let (above, parts) = (parts(root), parts(&path));
            let below =
                parts.strip_prefix(&above[..]).filter(|below| below.len() > 1 && !below[0].is_empty());
            let class = below.and_then(|below| ["ant", "bee"].iter().position(|class| *class == below[0]));
            let input = sample(uid, &[("path", path.as_str().into())]);
            let options = format!(r#"{{"classes": ["ant", "bee"], "root": "{root}", "field": "y"}}"#);
            let found = map(&Label::new(LabelOptions::parse(&options).unwrap()).unwrap(), &input, &host);
            let Some(class) = class else {
                assert_eq!(found.unwrap_err().get("path"), Some(path.as_str()), "{root}");
                continue;
            };
            good += 1;
            let mut wanted = input;
            wanted.set("y", class as i64);
            wanted.set("class", ["ant", "bee"][class]);
            assert_eq!(found.unwrap(), wanted, "{root}");
        }
        assert!((50..350).contains(&good), "{good}");
    }
}
