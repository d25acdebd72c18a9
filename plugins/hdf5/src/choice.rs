//! What of a file becomes samples: rows or groups, of which datasets, and what is left out and why.

use std::collections::{BTreeMap, BTreeSet};

use forebay_core::{Error, Result, Str};

use crate::{
    Dataset, File, Group, Object,
    file::OBJECTS_LIMIT,
    pieces::Hdf5PiecesOptions,
    structure::link::{Link, Target},
};

/// How many objects of a group are looked at to see whether each is a sample, and how many within each of them.
const LOOKED: usize = 64;
const LOOKED_WITHIN: usize = 1024;
/// How deep a group is looked for that holds more than one group.
const DEPTH: usize = 16;
/// The most datasets that are named in one error.
const NAMED: usize = 20;

/// What becomes of a file.
pub(crate) enum Chosen {
    /// `count` rows of these datasets; those without rows are the same in each.
    Rows {
        datasets: Vec<Dataset>,
        /// Why the others are not among them.
        left: Vec<Error>,
        count: u64,
    },
    /// The groups in `root`, each with the address of its header, by name.
    Groups { root: Str, groups: Vec<(Str, u64)> },
}

/// What the options, and where they leave it open the file's structure, say.
pub(crate) fn chosen(file: &File, root: &Group, options: &Hdf5PiecesOptions, limit: u64) -> Result<Chosen> {
    let paths = &options.datasets.0;
    let by_group = match options.by.as_str() {
        "group" => Some(root.clone()),
        "auto" if paths.is_empty() => samples_in(file, root)?,
        _ => None,
    };
    if let Some(root) = by_group {
        return Ok(Chosen::Groups { root: root.path().into(), groups: groups(&root)? });
    }
    match paths.is_empty() {
        true => all(file, root, limit),
        false => named(root, paths, limit),
    }
}

/// The paths of the datasets from `root` on.
pub(crate) fn relative(datasets: &[Dataset], root: &Group) -> Vec<String> {
    datasets.iter().map(|dataset| below(dataset, root).to_owned()).collect()
}

fn below<'a>(dataset: &'a Dataset, root: &Group) -> &'a str {
    let below = dataset.path().strip_prefix(root.path()).and_then(|rest| rest.strip_prefix('/'));
    below.unwrap_or(dataset.path())
}

/// The group whose groups are each a sample, if there is one: `root`, or the group that is alone in it.
///
/// It holds two groups or more, and a dataset of one name is in all of them. Where there are datasets beside these groups, and all
/// have equally many rows, a row is a sample.
fn samples_in(file: &File, root: &Group) -> Result<Option<Group>> {
    let mut root = root.clone();
    let mut links = objects(&root)?;
    for _ in 0..DEPTH {
        let [only] = links.as_slice() else { break };
        let Ok(Object::Group(group)) = root.follow(only) else { break };
        links = objects(&group)?;
        root = group;
    }
    let (mut beside, mut within) = (Vec::new(), Vec::new());
    for link in links.iter().take(LOOKED) {
        // What cannot be read is told by whoever reads it.
        match root.follow(link) {
            Ok(Object::Dataset(dataset)) => beside.push(*dataset),
            Ok(Object::Group(group)) => {
                let datasets = file.walk(&group, LOOKED_WITHIN, &mut |_| Ok(())).unwrap_or_default();
                within.push((group, datasets));
            }
            _ => {}
        }
    }
    within.retain(|(_, datasets)| !datasets.is_empty());
    let names = |(group, datasets): &(Group, Vec<Dataset>)| {
        datasets.iter().map(|dataset| below(dataset, group).to_owned()).collect::<BTreeSet<_>>()
    };
    let common = within.iter().map(names).reduce(|one, two| one.intersection(&two).cloned().collect());
    if within.len() < 2 || common.is_none_or(|names| names.is_empty()) {
        return Ok(None);
    }
    if let Some(first) = beside.first() {
        let mut all = beside.iter().chain(within.iter().flat_map(|(_, datasets)| datasets));
        if all.all(|dataset| dataset.has_rows() && dataset.rows() == first.rows()) {
            return Ok(None);
        }
    }
    Ok(Some(root))
}

/// The links of a group that lead to objects of the file, by name.
fn objects(group: &Group) -> Result<Vec<Link>> {
    let mut links = group.links()?;
    links.retain(|link| matches!(link.target, Target::Object(_)));
    links.sort_unstable_by(|one, two| one.name.cmp(&two.name));
    Ok(links)
}

/// The groups in `root`, each with the address of its header, by name.
fn groups(root: &Group) -> Result<Vec<(Str, u64)>> {
    // What is no group is told by whoever opens it, so that a file of a million groups is not read to list them.
    let group = |link: Link| match link.target {
        Target::Object(address) => Some((Str::from(link.name), address)),
        _ => None,
    };
    Ok(objects(root)?.into_iter().filter_map(group).collect())
}

/// The datasets with these paths; all that have rows have equally many.
fn named(root: &Group, paths: &[String], limit: u64) -> Result<Chosen> {
    let dataset = |path: &String| match root.object(path)? {
        Object::Dataset(dataset) => Ok(*dataset),
        _ => Err(Error::invalid("expected a dataset, found another object").context("object", path)),
    };
    let datasets = paths.iter().map(dataset).collect::<Result<Vec<_>>>()?;
    datasets.iter().try_for_each(|dataset| dataset.check(limit))?;
    let mut rows = datasets.iter().filter(|dataset| dataset.has_rows()).map(Dataset::rows);
    let count = rows.next().unwrap_or(1);
    if rows.any(|rows| rows != count) {
        let each = list(datasets.iter().filter(|dataset| dataset.has_rows()));
        return Err(Error::invalid(format!("the datasets differ in rows, choose with `datasets`: {each}")));
    }
    Ok(Chosen::Rows { datasets, left: Vec::new(), count })
}

/// All datasets that can be read as rows together: of those with equally many rows the ones that have most bytes, and all single elements.
fn all(file: &File, root: &Group, limit: u64) -> Result<Chosen> {
    let mut left = Vec::new();
    let mut refused = |error: Error| -> Result<()> {
        left.push(error);
        Ok(())
    };
    let mut datasets = file.walk(root, OBJECTS_LIMIT, &mut refused)?;
    datasets.retain(|dataset| dataset.check(limit).map_err(&mut refused).is_ok());
    if datasets.is_empty() && left.is_empty() {
        return Err(Error::invalid(format!("no dataset in `{}/`", root.path())));
    }
    let mut sets = BTreeMap::<u64, u64>::new();
    for dataset in datasets.iter().filter(|dataset| dataset.has_rows()) {
        let bytes = sets.entry(dataset.rows()).or_default();
        *bytes = bytes.saturating_add(dataset.row_len().saturating_mul(dataset.rows()));
    }
    let most = sets.into_iter().max_by_key(|&(rows, bytes)| (bytes, rows));
    // A file of single elements is one sample.
    let count = most.map_or(u64::from(!datasets.is_empty()), |(rows, _)| rows);
    let fits = |dataset: &Dataset| !dataset.has_rows() || dataset.rows() == count;
    let (datasets, others): (Vec<_>, Vec<_>) = datasets.into_iter().partition(fits);
    if !others.is_empty() {
        let taken = datasets.iter().find(|dataset| dataset.has_rows()).map_or("", Dataset::path);
        left.push(Error::invalid(format!(
            "left out, as these have other rows than the {count} of `{taken}` (name some with `datasets`, or read groups with `by = \"group\"`): {}",
            list(others.iter())
        )));
    }
    Ok(Chosen::Rows { datasets, left, count })
}

/// How many rows each has.
fn list<'a>(datasets: impl Iterator<Item = &'a Dataset> + Clone) -> String {
    let each = datasets.clone().take(NAMED);
    let mut each: Vec<_> =
        each.map(|dataset| format!("`{}` has {}", dataset.path(), dataset.rows())).collect();
    let more = datasets.count().saturating_sub(NAMED);
    each.extend((more > 0).then(|| format!("and {more} more")));
    each.join(", ")
}
