//! Reading the manifests of all in-tree plugins, and loading their code.

use forebay_loader::{Registry, Result, Search};

use crate::measure::spend;

const ROUNDS: usize = 21;

pub(crate) fn run() -> Result<Vec<String>> {
    let paths: Vec<_> = crate::registry()?
        .plugins()
        .iter()
        .filter_map(|plugin| plugin.path().map(ToOwned::to_owned))
        .collect();
    let search = || paths.iter().fold(Search::nowhere(), |search, path| search.first(path));
    let (mut read, mut loaded) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (spent, registry) = spend(|| Registry::new(search()))?;
        assert_eq!(registry.plugins().len(), paths.len(), "a plugin was lost");
        read.push(spent.wall * 1e3);
        let (spent, ()) = spend(|| registry.plugins().iter().try_for_each(|plugin| plugin.check()))?;
        loaded.push(spent.wall * 1e3);
    }
    let first_load = loaded[0];
    read.sort_by(f64::total_cmp);
    Ok(vec![
        format!("{} plugins", paths.len()),
        format!("manifests read: {:.2} ms (worst {:.2})", read[ROUNDS / 2], read[ROUNDS - 1]),
        format!("libraries loaded and checked, first time: {first_load:.2} ms"),
    ])
}
