//! `label`: the class that a file's folder stands for.

use std::path::{Component, Path};

use forebay_core::{Context, DataPipe, Error, Map, PipeInfo, Result, Sample, Str, Value, View, options};

const PATH: &str = "path";

options! {
    /// Options of `label`.
    pub struct LabelOptions {
        /// The names of the classes; the place of a name is its label.
        classes: Vec<String> = required;
        /// The folder that has a folder for each class.
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
    root: String,
    field: String,
    class: Option<String>,
}

impl DataPipe for Label {
    const INFO: PipeInfo =
        PipeInfo { name: "label", summary: "The class that a file's folder stands for", ..PipeInfo::DEFAULT };
    type Options = LabelOptions;

    fn new(options: LabelOptions) -> Result<Self> {
        let LabelOptions { classes, root, field, class } = options;
        Ok(Self { classes: classes.into_iter().map(Str::from).collect(), root, field, class })
    }
}

impl Map for Label {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let Some(View::Str(path)) = sample.get(PATH).map(Value::view) else {
            return Err(Error::invalid("expected a field `path` that is text"));
        };
        let folder = self.folder(path).map_err(|error| error.context("path", path))?;
        let place = self.classes.iter().position(|class| class.as_str() == folder);
        let place = place.ok_or_else(|| {
            let count = self.classes.len();
            Error::invalid(format!("its folder `{folder}` is none of the {count} classes"))
                .context("path", path)
        })?;
        sample.set(&self.field, place as i64);
        if let Some(name) = &self.class {
            sample.set(name, self.classes[place].clone());
        }
        Ok(())
    }
}

impl Label {
    /// The folder directly below the root that `path` lies in.
    fn folder<'a>(&self, path: &'a str) -> Result<&'a str> {
        let normal = |path: &'a str| {
            Path::new(path.strip_prefix("file://").unwrap_or(path))
                .components()
                .filter(|part| *part != Component::CurDir)
        };
        let root = self.root.strip_prefix("file://").unwrap_or(&self.root);
        let mut below = normal(path);
        for part in Path::new(root).components().filter(|part| *part != Component::CurDir) {
            if below.next() != Some(part) {
                return Err(Error::invalid(format!("the file does not lie below `{root}`")));
            }
        }
        match (below.next(), below.next()) {
            (Some(Component::Normal(folder)), Some(_)) => Ok(folder.to_str().unwrap_or_default()),
            _ => Err(Error::invalid(format!("the file lies in no folder below `{root}`"))),
        }
    }
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
        for (root, path) in
            [("d", "d/bee/x/1.jpg"), ("./d/", "d/bee/1.jpg"), (".", "bee/1.jpg"), ("/d", "/d/bee/1")]
        {
            let out = label(root, path).unwrap();
            assert_eq!(out.get("label").and_then(Value::as_i64), Some(1), "{root} {path}");
            assert_eq!(out.get("class").and_then(Value::as_str), Some("bee"));
        }
        for (root, path) in [("d", "e/bee/1.jpg"), ("d", "d/bee"), ("d", "d/cow/1.jpg")] {
            assert_eq!(label(root, path).unwrap_err().get("path"), Some(path));
        }
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
